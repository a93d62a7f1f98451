package sosreport

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Whatever an output holds, a report is made of it, and a host of that.
func FuzzReport(f *testing.F) {
	names := slices.Sorted(maps.Keys(map[string]bool{
		"sos_commands/networking/ip_-d_address": true, "sos_commands/networking/ip_-s_-d_link": true,
		"sos_commands/networking/ip_route_show_table_all": true,
		"sos_commands/networking/ethtool_-i_eth0":         true, "sos_commands/networking/ethtool_-l_eth0": true,
		"sos_commands/networking/ethtool_-S_eth0":  true,
		"sos_commands/networking/ethtool_-m_eth0":  true,
		"proc/net/bonding/eth0":                    true,
		"sos_commands/networking/tc_-s_qdisc_show": true, "sos_commands/kernel/sysctl_-a": true,
		"sos_commands/networking/netstat_-s": true,
		"sos_commands/pci/lspci_-nnvv":       true, "sos_commands/date/date": true, "proc/interrupts": true,
		"proc/bus/pci/00/03.0": true, "proc/net/dev": true, "proc/12/status": true,
		"etc/localtime": true, "proc/stat": true,
	}))
	f.Add(0, []byte("2: eth0: <UP> mtu 1500\n    link/ether 02:00:00:00:00:01\n"),
		"../../devices/pci0000:00/0000:00:03.0/net/eth0")
	f.Add(3, []byte("driver: x\nbus-info: ../../../etc\n"), "/etc")
	entries := render(f, tiny(), sos4)
	f.Fuzz(func(t *testing.T, which int, content []byte, target string) {
		c := newCollector()
		for _, e := range entries {
			if e.Target == "" && wanted(e.Name) {
				_ = c.file(e.Name, 0, strings.NewReader(string(e.Content)))
			}
		}
		_ = c.link("sys/class/net/eth0", target)
		_ = c.file(names[uint(which)%uint(len(names))], 0, strings.NewReader(string(content)))
		r, err := c.report(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Root().Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _ = r.Root().Counters() // A report without any counters is an error there.
	})
}

// Whatever a file is, it is a report or an error that says that it is none.
func FuzzRead(f *testing.F) {
	plain := tarred(f, "a/", render(f, tiny(), sos4)[:3])
	f.Add(plain)
	f.Add(gzipped(f, plain))
	f.Add([]byte("BZh91AY&SY"))
	f.Add([]byte("\xfd7zXZ\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(t.Context(), bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("an error without a kind: %v", err)
			}
			return
		}
		if _, err := r.Root().Snapshot(t.Context()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			// outputs alone, and none that is known
			t.Error(err)
		}
	})
}
