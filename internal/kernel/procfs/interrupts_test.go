package procfs

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseInterrupts covers the various names of controllers, and an offline CPU.
func TestParseInterrupts(t *testing.T) {
	in := `           CPU0       CPU2       
  0:        127          0   IO-APIC-edge      timer
 19:          0          5   IO-APIC-level  ide0, eth0
 24:          0          0  IO-APIC   5-edge
 36:          0    2035819 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 50:         12         13     GICv3  30 Level     arch_timer
 51:          1          0   PCI-MSI 524288-edge      mlx5_comp0@pci:0000:06:00.0
NMI:          3          4   Non-maskable interrupts
ERR:          0
`
	want := map[int]Interrupt{
		0:  {0, "timer", []CPUCount{{0, 127}}},
		19: {19, "ide0, eth0", []CPUCount{{2, 5}}},
		24: {24, "", nil},
		36: {36, "virtio1-req.0", []CPUCount{{2, 2035819}}},
		50: {50, "arch_timer", []CPUCount{{0, 12}, {2, 13}}},
		51: {51, "mlx5_comp0@pci:0000:06:00.0", []CPUCount{{0, 1}}},
	}
	got, err := ParseInterrupts([]byte(in))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "\n", "hello\n", "CPU0 CPU1\n 5: 1\n", "CPU0\n 5: x eth0\n", "CPU99999999\n"} {
		if _, err := ParseInterrupts([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseNFSMounts(t *testing.T) {
	in := `proc /proc proc rw,nosuid 0 0
192.0.2.9:/srv/my\040data /mnt/a\134b nfs4 rw,relatime,vers=4.2,rsize=262144,wsize=262144,nconnect=4,proto=tcp 0 0
old:/x /y nfs rw,vers=3 0 0
short nfs
`
	want := []Mount{
		{"192.0.2.9:/srv/my data", `/mnt/a\b`, "nfs4",
			"rw,relatime,vers=4.2,rsize=262144,wsize=262144,nconnect=4,proto=tcp"},
		{"old:/x", "/y", "nfs", "rw,vers=3"},
	}
	if diff := cmp.Diff(want, ParseNFSMounts([]byte(in))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseNeighbourEntries(t *testing.T) {
	n, err := ParseNeighbourEntries(
		[]byte("entries  allocs   destroys\n0000001f 0000037e 00000399\n0000001f 00000453 00000432\n"))
	if n != 31 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	for _, bad := range []string{"", "entries\n", "entries\nxyz\n", "allocs entries\n1 2\n"} {
		if _, err := ParseNeighbourEntries([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// FuzzTables checks that the parsers of tables end for any bytes, and return only values from them.
func FuzzTables(f *testing.F) {
	f.Add([]byte("           CPU0       CPU1\n 36:  0  5 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n"))
	f.Add([]byte("h:/a\\040b /m\\0 nfs4 rw 0 0\n"))
	f.Add([]byte("entries  allocs\n0000001f 0000037e\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		found, _ := ParseInterrupts(b)
		for n, i := range found {
			if n != i.Number || len(i.Name) > len(b) {
				t.Errorf("interrupt %d: %+v", n, i)
			}
		}
		for _, m := range ParseNFSMounts(b) {
			if m.Path == "" || len(m.Path)+len(m.Source) > len(b) {
				t.Errorf("mount %+v", m)
			}
		}
		_, _ = ParseNeighbourEntries(b)
		for i, l := range SoftnetLines(b) {
			if l.CPU < i {
				t.Errorf("line %d: %+v", i, l)
			}
		}
	})
}

// FuzzCPUList checks that a formatted list parses to the same list.
func FuzzCPUList(f *testing.F) {
	for _, seed := range []string{"0-3,8,10-11", "0", "", "5-5", "3-1", "7,0-2", "0-99999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		cpus := ParseCPUList(in)
		slices.Sort(cpus)
		cpus = slices.Compact(cpus)
		if diff := cmp.Diff(cpus, ParseCPUList(FormatCPUList(cpus))); diff != "" {
			t.Errorf("%q: %q (-read +read again):\n%s", in, FormatCPUList(cpus), diff)
		}
	})
}
