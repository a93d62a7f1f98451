package sosreport

// driver is what ethtool -i says of who drives a card.
type driver struct{ name, version, firmware, bus string }

// parseDriver reads "ethtool -i NIC" (dump_drvinfo of ethtool). The kernel's own word "N/A", which some drivers give for a firmware that they do not have, is a
// version like any other.
func parseDriver(text string) driver {
	var d driver
	for line := range lines(text) {
		key, value, _ := pair(line)
		switch key {
		case "driver":
			d.name = value
		case "version":
			d.version = value
		case "firmware-version":
			d.firmware = value
		case "bus-info":
			d.bus = value
		}
	}
	// The driver of tun and tap says here which of the two it is (tun_get_drvinfo), which is no bus.
	if d.bus == "tun" || d.bus == "tap" {
		d.bus = ""
	}
	return d
}
