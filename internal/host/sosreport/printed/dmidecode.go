package printed

import "strings"

// firmwareFiles are the attributes of /sys/class/dmi/id that package host reads, by section and key
// of dmidecode.
var firmwareFiles = map[string]map[string]string{
	"BIOS Information":       {"Vendor": "bios_vendor"},
	"System Information":     {"Manufacturer": "sys_vendor", "Product Name": "product_name"},
	"Base Board Information": {"Manufacturer": "board_vendor"},
}

// ParseFirmware parses dmidecode(8): sections with a title in the first column and keys after a
// tab. Of several sections with one title, such as those of many boards, the first counts, as in
// the kernel.
func ParseFirmware(text string) map[string]string {
	found := make(map[string]string)
	var section map[string]string
	for line := range lines(text) {
		if !strings.HasPrefix(line, "\t") {
			section = firmwareFiles[line]
			continue
		}
		key, value, _ := pair(line)
		file := section[key]
		if _, known := found[file]; file != "" && !known && value != "" {
			found[file] = value
		}
	}
	return found
}
