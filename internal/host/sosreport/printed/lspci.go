package printed

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// PCIDevice is one device as lspci describes it. Zero means not known: without root's privileges
// lspci shows no capabilities.
type PCIDevice struct {
	Address                          string // with the domain: 0000:03:00.0
	Vendor, Device                   string // as in sysfs: 0x8086
	SubsystemVendor, SubsystemDevice string
	// the line of its slot, which a card with message-signalled interrupts does not use
	IRQ                   int
	NUMANode              int    // -1: not known
	SecondaryBus          int    // of a bridge: the number of the bus below it; 0: no bridge
	Speed, MaxSpeed       string // of its PCIe link, in the words of sysfs: 8.0 GT/s PCIe
	Width, MaxWidth       int    // lanes
	PayloadBytes          int    // MaxPayload as set
	PayloadSupportedBytes int
	ReadRequestBytes      int      // MaxReadReq
	ASPM                  []string // power saving states of the link that are enabled: l0s, l1
}

// The patterns of one line each; lspci.c and ls-caps.c of pciutils print them. Names of vendors and
// devices may contain brackets of their own, so the ids are the last ones of their line.
var (
	pciHead = pattern.New(
		`^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) .*\[([0-9a-f]{4}):([0-9a-f]{4})\]` +
			`(?: \(rev [0-9a-f]{2}\))?(?: \(prog-if .*\))?$`)
	pciPair   = pattern.New(`\[([0-9a-f]{4}):([0-9a-f]{4})\]$`)
	pciLink   = pattern.New(`Speed ([0-9.]+)GT/s[^,]*, Width x([0-9]+)`)
	pciIRQ    = pattern.New(`routed to IRQ ([0-9]+)`)
	pciBus    = pattern.New(`secondary=([0-9a-f]{2})`)
	pciSize   = pattern.New(`MaxPayload ([0-9]+) bytes`)
	pciReads  = pattern.New(`MaxReadReq ([0-9]+) bytes`)
	pciActive = pattern.New(`ASPM ([L0-9s ]+) Enabled`)
)

// ParsePCI parses "lspci -nnvv": a head for each device with its address in the first column and
// its ids in brackets, and indented lines. Each function of a shared card is a device.
func ParsePCI(text string) []*PCIDevice {
	var all []*PCIDevice
	var d *PCIDevice
	control := false // the lines on DevCtl continue until the next key
	for line := range lines(text) {
		if line == "" {
			d = nil
			continue
		}
		if m := pciHead.FindStringSubmatch(line); m != nil {
			// The domain is omitted on machines with only one, unless -D requests it.
			if strings.Count(m[1], ":") == 1 {
				m[1] = "0000:" + m[1]
			}
			d = &PCIDevice{Address: m[1], Vendor: "0x" + m[2], Device: "0x" + m[3], NUMANode: -1}
			all = append(all, d)
			continue
		}
		if d == nil || line[0] != '\t' {
			continue // an error of lspci between the devices
		}
		key, value, _ := pair(line)
		switch key {
		case "Subsystem":
			if m := pciPair.FindStringSubmatch(value); m != nil {
				d.SubsystemVendor, d.SubsystemDevice = "0x"+m[1], "0x"+m[2]
			}
		case "Interrupt":
			d.IRQ = matched(pciIRQ, value, 10)
		case "NUMA node":
			if n, err := strconv.Atoi(value); err == nil {
				d.NUMANode = n
			}
		case "Bus":
			d.SecondaryBus = matched(pciBus, value, 16)
		case "DevCap":
			d.PayloadSupportedBytes = matched(pciSize, value, 10)
		case "LnkCap":
			d.MaxSpeed, d.MaxWidth = linkOf(value)
		case "LnkSta":
			d.Speed, d.Width = linkOf(value)
		case "LnkCtl":
			if m := pciActive.FindStringSubmatch(value); m != nil {
				d.ASPM = strings.Fields(strings.ToLower(m[1]))
			}
		}
		// "MaxPayload 128 bytes, MaxReadReq 512 bytes" is in the third line of DevCtl, which has no
		// key.
		control = key == "DevCtl" || control && !strings.HasPrefix(key, "Dev") && !strings.HasPrefix(key, "Lnk")
		if reads := matched(pciReads, line, 10); control && reads > 0 {
			d.ReadRequestBytes, d.PayloadBytes = reads, matched(pciSize, line, 10)
		}
	}
	return all
}

// matched returns the number in the first group; 0: no match.
func matched(re *pattern.Pattern, text string, base int) int {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1], base, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// linkOf parses "Port #1, Speed 8GT/s (downgraded), Width x4 (downgraded)"; the speed is in the
// words of sysfs.
func linkOf(text string) (speed string, width int) {
	m := pciLink.FindStringSubmatch(text)
	if m == nil {
		return "", 0
	}
	width, _ = strconv.Atoi(m[2]) // digits
	// "unknown", for a device that has left the bus, does not match, so the speed stays unknown.
	gt, err := strconv.ParseFloat(m[1], 64)
	if err != nil || width > 32 {
		return "", 0
	}
	return fmt.Sprintf("%.1f GT/s PCIe", gt), width
}
