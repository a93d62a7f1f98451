package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

var (
	// aboveInterfaces is a value in the key above those of the interfaces.
	aboveInterfaces = pattern.New(`(?i)^registry:.*\\tcpip6?\\parameters\\interfaces\\[^\\]+$`)
	// keywordOfDevice is a keyword of a NIC in the key of the device instead of that of its driver.
	keywordOfDevice = pattern.New(`(?i)^registry:.*\\enum\\.*\\device parameters\\\*\w+$`)
	// deviceWithoutUnit is an option of one NIC of FreeBSD without its number.
	deviceWithoutUnit = pattern.New(`^sysctl:dev\.(?:em|igb|igc|ix|ixv|ixl|ice|re|bge|bnxt|cxl|mce|vtnet|vmx)\.[a-z]`)
)

// misplaced says why nothing takes a setting whose name may be right: it is in a key that nothing
// reads, or its line has no end. It returns nothing for any other setting.
func misplaced(name, value string) (why, source string) {
	switch {
	case strings.HasPrefix(strings.ToUpper(name), `REGISTRY:HKCU\SYSTEM\`):
		return "The wrong hive: drivers and services read HKLM.",
			"learn.microsoft.com: registry trees for devices and drivers"
	case aboveInterfaces.MatchString(name):
		return "Nothing reads values of this key: each interface has a key of its own below it.",
			"learn.microsoft.com: TCP/IP registry values"
	case keywordOfDevice.MatchString(name):
		return `The wrong key: drivers read their keywords below Control\Class.`,
			"learn.microsoft.com: Standardized INF keywords for network devices"
	case deviceWithoutUnit.MatchString(name):
		return "No NIC of that name: each has its number, dev.DRIVER.0 and so on.", "sysctl(8); em(4)"
	case strings.HasPrefix(value, `"`) && strings.Count(value, `"`) == 1 && strings.HasPrefix(name, "sysctl:"):
		return "The quote before the value has no end, so that the line is refused.", "loader.conf(5); sysctl(8)"
	}
	return "", ""
}
