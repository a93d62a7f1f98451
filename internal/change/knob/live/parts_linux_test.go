package live

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// Parts of a machine as sysfs has them, some without what others have.
func TestHostKnobs(t *testing.T) {
	root := tree(t, map[string]string{
		"cpu/cpu0/power/pm_qos_resume_latency_us": "0\n", "cpu/cpu0/cpufreq/scaling_governor": "schedutil\n",
		"cpu/cpu10/power/pm_qos_resume_latency_us": "n/a\n", "cpu/cpufreq/boost": "1\n", "cpu/cpu2/online": "1\n",
		"pci/0000:03:00.0/link/l1_aspm": "1\n", "pci/0000:00:1f.0/vendor": "0x8086\n",
		"block/sda/queue/read_ahead_kb": "128\n", "block/sda/queue/scheduler": "none [mq-deadline] kyber bfq \n",
		"block/sda/queue/rq_affinity": "1\n", "block/zram0/queue/scheduler": "none\n",
		"latency": "\x00\x94\x35\x77",
	})
	cpus := processorKnobs{cpuKnobs(filepath.Join(root, "cpu")), filepath.Join(root, "latency")}
	kinds := map[string]accessor{"cpu": cpus, "pci": pciKnobs(filepath.Join(root, "pci")),
		"block": blockKnobs(filepath.Join(root, "block"))}
	for _, tc := range []struct{ kind, subject, attribute, want, answer string }{
		{"cpu", "0", "resume_latency", "0", "ok"},
		{"cpu", "10", "resume_latency", "n/a", "ok"},
		{"cpu", "0", "scaling_governor", "schedutil", "ok"},
		{"cpu", "10", "scaling_governor", "", "not supported"}, // no frequency to choose, as in a guest
		{"cpu", "7", "resume_latency", "", "not there"},
		{"cpu", "freq", "boost", "", "not there"},
		{"cpu", "../block/sda", "x", "", "not there"},
		{"cpu", "0", "colour", "", "not supported"},
		{"cpu", "all", "dma_latency", "2000000000", "ok"},
		{"cpu", "all", "resume_latency", "", "not there"},
		{"pci", "0000:03:00.0", "l1_aspm", "1", "ok"},
		{"pci", "0000:03:00.0", "l1_2_aspm", "", "not supported"},
		{"pci", "0000:00:1f.0", "l1_aspm", "", "not supported"}, // conventional PCI has no such link
		{"pci", "0000:09:00.0", "l1_aspm", "", "not there"},
		{"pci", "..", "l1_aspm", "", "not there"},
		{"block", "sda", "read_ahead_kb", "128", "ok"},
		{"block", "sdb", "read_ahead_kb", "", "not there"},
		{"block", "sda", "scheduler", "mq-deadline", "ok"},
		{"block", "zram0", "scheduler", "none", "ok"},
		{"block", "sda", "rq_affinity", "1", "ok"},
		{"block", "sda", "wbt_lat_usec", "", "not supported"}, // a device without a request queue
	} {
		v, err := kinds[tc.kind].read(tc.subject, tc.attribute)
		if got := answer(t, err); got != tc.answer || strings.TrimSpace(string(v)) != tc.want {
			t.Errorf("%s:%s/%s: %q, %v; want %q and %s", tc.kind, tc.subject, tc.attribute, v, err, tc.want, tc.answer)
		}
	}
	for kind, write := range map[string][3]string{"cpu": {"0", "resume_latency", "20"},
		"pci": {"0000:03:00.0", "l1_aspm", "0"}, "block": {"sda", "read_ahead_kb", "4096"}} {
		if err := kinds[kind].write(write[0], write[1], knob.Value(write[2])); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if v, err := kinds[kind].read(write[0], write[1]); err != nil || strings.TrimSpace(string(v)) != write[2] {
			t.Errorf("%s: wrote %s, reads %q, %v", kind, write[2], v, err)
		}
	}
	// The shared latency is for reading, and the reason is said.
	for _, err := range []error{cpus.write("all", "dma_latency", "0"), cpus.check("all", "dma_latency", "0")} {
		if !errors.Is(err, knob.ErrReadOnly) ||
			!strings.Contains(err.Error(), "only while a process holds the file open") {
			t.Errorf("write of the shared latency: %v", err)
		}
	}
	list, err := cpus.subjects()
	if err != nil || strings.Join(list, " ") != "0 2 10" {
		t.Errorf("processors: %v, %v", list, err)
	}
}
