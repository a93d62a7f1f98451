package watch

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// archived is a host with one card at one moment.
func archived(moment, stat, snmp, interrupts string) host.Root {
	file := func(name, content string) hostfs.Entry { return hostfs.Entry{Name: name, Content: []byte(content)} }
	const device = "sys/devices/pci0000:00/0000:00:03.0"
	return host.Root{FS: hostfs.NewMemory([]hostfs.Entry{
		file("linerate/host.json", `{"time":"`+moment+`"}`), file("proc/stat", stat), file("proc/net/snmp", snmp),
		file("proc/interrupts", interrupts),
		file(device+"/irq", "24\n"), file(device+"/net/eth0/ifindex", "2\n"),
		{Name: "sys/class/net/eth0", Target: "../../devices/pci0000:00/0000:00:03.0/net/eth0"},
		{Name: device + "/net/eth0/device", Target: "../../../0000:00:03.0"},
	})}
}

// Of two archives there is what happened between them, of one what happened since the start; both
// with the interrupts of cards.
func TestArchives(t *testing.T) {
	older := archived("2024-01-01T01:00:00Z", "cpu0 100 0 0 100\nbtime 1704067200\n", "Tcp: RetransSegs\nTcp: 10\n",
		"  CPU0 CPU1\n 24: 1000 0 PCI-MSI 1-edge  eth0\n")
	newer := archived("2024-01-01T01:00:10Z", "cpu0 200 0 0 150\nbtime 1704067200\n", "Tcp: RetransSegs\nTcp: 17\n",
		"  CPU0 CPU1\n 24: 1000 50 PCI-MSI 1-edge  eth0\n")
	before, err := ReadArchive(older)
	if err != nil {
		t.Fatal(err)
	}
	after, err := ReadArchive(newer)
	if err != nil {
		t.Fatal(err)
	}
	s := after.Since(before)
	if s.Seconds != 10 || s.Counters.Values["Tcp.RetransSegs"] != 7 || len(s.Interrupts) != 1 ||
		s.Interrupts[0].Total != 50 || *s.Interrupts[0].PerSec != 5 {
		t.Errorf("between: %+v %+v", s, s.Interrupts)
	}
	if len(s.CPUs) != 1 || s.CPUs[0].User != 1 || s.CPUs[0].Idle != 0.5 || len(s.Warnings) == 0 {
		t.Errorf("processors %+v, warnings %q", s.CPUs, s.Warnings)
	}
	boot := time.Unix(1704067200, 0)
	s = after.SinceBoot(boot)
	if s.Seconds != 3610 || s.Counters.Values["Tcp.RetransSegs"] != 17 || len(s.Interrupts) != 1 ||
		s.Interrupts[0].Total != 1050 || len(s.Interrupts[0].Counts) != 2 {
		t.Errorf("since boot: %+v %+v", s, s.Interrupts)
	}
	if s = after.SinceBoot(time.Time{}); s.Seconds != 0 || s.Counters.Values["Tcp.RetransSegs"] != 17 ||
		s.Interrupts[0].PerSec != nil {
		t.Errorf("since a boot that is not known: %+v %+v", s, s.Interrupts)
	}
	if _, err := ReadArchive(host.Root{FS: hostfs.NewMemory([]hostfs.Entry{{Name: "proc/version"}})}); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("an archive that counts nothing: %v", err)
	}
}
