package printed

// Driver is what ethtool -i says of who drives a card, and where it sits.
type Driver struct {
	Name     string
	Version  string // of drivers in the kernel's tree it is the kernel's release since Linux 5.7
	Firmware string
	Bus      string // address on the bus: 0000:03:00.0; empty: software, or a driver that does not tell
}

// ParseDriver reads "ethtool -i NIC" (dump_drvinfo of ethtool). The kernel's own word "N/A", which
// some drivers give for a firmware that they do not have, is a version like any other.
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
	// The driver of tun and tap says here which of the two it is (tun_get_drvinfo), which is no
	// bus.
	if d.Bus == "tun" || d.Bus == "tap" {
		d.Bus = ""
	}
	return d
}
