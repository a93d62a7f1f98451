package bus

import (
	"bytes"
	"strconv"
)

// Errors holds the errors that a PCIe device has reported on its link since the kernel found it
// (Advanced Error Reporting, PCIe 5.0 §6.2). A correctable error costs time, since the packet is
// sent again; a nonfatal one costs the packet, a fatal one the link.
type Errors struct {
	Correctable, NonFatal, Fatal uint64
	// Kinds counts each kind that occurred, over all three classes, by the kernel's names: BadTLP,
	// Timeout, CmpltTO, … Nil: no errors.
	Kinds map[string]uint64
}

// Errors reads aer_dev_{correctable,nonfatal,fatal} (sysfs-bus-pci-devices-aer, since Linux 4.19).
// The counts are the kernel's own, so reading them wakes no device. ok is false if the device does
// not report errors, or the kernel or firmware does not expose them.
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
// returns their sum. It skips the last line, the kernel's own sum under a name that begins with
// TOTAL_, which would count everything twice.
func parseErrors(b []byte, into *Errors) (sum uint64) {
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		// The last blank: the first kernels wrote "Bad TLP" where later ones write BadTLP.
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
