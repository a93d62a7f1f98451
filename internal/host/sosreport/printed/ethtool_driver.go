package printed

// Driver is the output of ethtool -i about a card's driver and place.
type Driver struct {
	Name     string
	Version  string // the kernel's release since Linux 5.7 for drivers of the kernel's tree
	Firmware string
	Bus      string // address on the bus: 0000:03:00.0; empty: software, or not reported by the driver
}

// ParseDriver parses "ethtool -i NIC" (dump_drvinfo of ethtool). The kernel's "N/A", which some
// drivers report for a missing firmware, is a version like any other.
func ParseDriver(text string) Driver {
	var d Driver
	for line := range lines(text) {
		key, value, _ := pair(line)
		switch key {
		case "driver":
			d.Name = value
		case "version":
			d.Version = value
		case "firmware-version":
			d.Firmware = value
		case "bus-info":
			d.Bus = value
		}
	}
	// The driver of tun and tap reports here which of the two it is (tun_get_drvinfo), and that of
	// bridges that it has none (br_getinfo).
	if d.Bus == "tun" || d.Bus == "tap" || d.Bus == "N/A" {
		d.Bus = ""
	}
	return d
}
