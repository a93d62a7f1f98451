package route

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// neighbourMessage returns a message as neightbl_fill_info makes it, with the given number of
// statistics.
func neighbourMessage(t testing.TB, figures int) []byte {
	t.Helper()
	e := netlink.NewAttributeEncoder()
	e.String(ndtaName, "arp_cache")
	e.Uint32(ndtaThresh1, 128)
	e.Uint32(ndtaThresh2, 512)
	e.Uint32(ndtaThresh3, 1024)
	config := make([]byte, 32)
	binary.NativeEndian.PutUint32(config[configEntries:], 77)
	e.Bytes(ndtaConfig, config)
	var stats []byte
	for i := range figures {
		stats = binary.NativeEndian.AppendUint64(stats, uint64(100+i))
	}
	e.Bytes(ndtaStats, stats)
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{2, 0, 0, 0}, b...)
}

func TestParseNeighbourTable(t *testing.T) {
	want := NeighbourTable{Name: "arp_cache", Entries: 77, Thresholds: [3]uint32{128, 512, 1024},
		ResolutionsFailed: 103, ForcedCollections: 109, Fulls: 110}
	got, ok, err := parseNeighbourTable(neighbourMessage(t, 11))
	if d := cmp.Diff(want, got); d != "" || !ok || err != nil {
		t.Errorf("%v %v (-want +got):\n%s", ok, err, d)
	}
	// Before Linux 4.3 there was one figure less.
	want.Fulls = 0
	got, ok, err = parseNeighbourTable(neighbourMessage(t, 10))
	if d := cmp.Diff(want, got); d != "" || !ok || err != nil {
		t.Errorf("old kernel: %v %v (-want +got):\n%s", ok, err, d)
	}
	e := netlink.NewAttributeEncoder()
	e.String(ndtaName, "arp_cache")
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := parseNeighbourTable(append([]byte{2, 0, 0, 0}, b...)); ok || err != nil {
		t.Errorf("settings of an interface: %v %v", ok, err)
	}
	if _, _, err := parseNeighbourTable([]byte{2}); err == nil {
		t.Error("a message without a header")
	}
}

func FuzzParseNeighbourTable(f *testing.F) {
	f.Add(neighbourMessage(f, 11))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, _ = parseNeighbourTable(b) // must not panic
	})
}

// TestNeighbourTables reads from the running kernel, in any namespace; thresholds always exist.
func TestNeighbourTables(t *testing.T) {
	c, err := nl.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tables, err := New(c).NeighbourTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if table.Name == "arp_cache" {
			if table.Thresholds[2] == 0 { // an administrator may set the others to anything
				t.Errorf("%+v", table)
			}
			return
		}
	}
	t.Errorf("no arp_cache in %+v", tables)
}
