package bus

import (
	"bytes"
	"strconv"
)

// Errors are what a PCIe device saw go wrong on its link since the kernel found it (Advanced Error
// Reporting, PCIe 5.0 §6.2). Correctable ones cost time, since the packet is sent again; the others
// cost the packet, and fatal ones the link.
type Errors struct {
	Correctable, NonFatal, Fatal uint64
	// Kinds are those that happened, of all three together, by the kernel's names: BadTLP, Timeout,
	// CmpltTO, … Nil: none did.
	Kinds map[string]uint64
}

// Errors reads aer_dev_{correctable,nonfatal,fatal} (sysfs-bus-pci-devices-aer, since Linux 4.19).
// The counts are the kernel's own, so that no device is asked or woken. False: the device does not
// report errors, or the kernel or firmware keeps them to itself.
func (m Machine) Errors(device string) (Errors, bool) {
	var e Errors
	told := false
	for _, f := range []struct {
		class string
		total *uint64
	}{{"correctable", &e.Correctable}, {"nonfatal", &e.NonFatal}, {"fatal", &e.Fatal}} {
		b, err := m.Tree.Read(device + "/aer_dev_" + f.class)
		if err != nil {
			continue
		}
		told = true
		*f.total += parseErrors(b, &e)
	}
	return e, told
}

// parseErrors reads lines of a name and a count (aer_stats_dev_attr in drivers/pci/pcie/aer.c) and
// gives their sum. The last line is the kernel's own sum under a name that begins with TOTAL_,
// which would count everything twice.
func parseErrors(b []byte, into *Errors) (sum uint64) {
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		// The last one: the first kernels wrote "Bad TLP" where later ones write BadTLP.
		at := bytes.LastIndexByte(line, ' ')
		if at <= 0 {
			continue
		}
		kind := string(bytes.TrimSpace(line[:at]))
		n, err := strconv.ParseUint(string(line[at+1:]), 10, 64)
		if err != nil || n == 0 || kind == "" || bytes.HasPrefix(line, []byte("TOTAL_")) {
			continue
		}
		if into.Kinds == nil {
			into.Kinds = make(map[string]uint64)
		}
		into.Kinds[kind] += n
		sum += n
	}
	return sum
}
