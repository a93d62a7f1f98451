package moderation

import "strings"

// controllers lists the devices of Intel (vendor 8086) that e1000 drives, by controller
// (e1000_set_mac_type in e1000_hw.c).
var controllers = map[string][]string{
	"82542": {"1000"},
	"82543": {"1001", "1004"},
	"82544": {"1008", "1009", "100c", "100d"},
	"82540": {"100e", "1015", "1016", "1017", "101e"},
	"82545": {"100f", "1011", "1026", "1027", "1028"},
	"82546": {"1010", "1012", "101d", "1079", "107a", "107b", "108a", "1099", "10b5"},
	"82541": {"1013", "1014", "1018", "1076", "1077", "1078", "107c"},
	"82547": {"1019", "101a", "1075"},
}

// ControllerOf returns the controller for a PCI id as lspci -n prints it: "8086:1075" is an 82547.
// It is empty for cards that e1000 does not drive.
func ControllerOf(pciID string) string {
	device, ok := strings.CutPrefix(strings.ToLower(pciID), "8086:")
	if !ok {
		return ""
	}
	for name, devices := range controllers {
		for _, d := range devices {
			if d == device {
				return name
			}
		}
	}
	return ""
}
