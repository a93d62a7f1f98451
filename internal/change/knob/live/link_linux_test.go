package live

import (
	"errors"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// A check lists all interfaces only when a smaller MTU may lower some of them.
func TestCheckListsOthersWhereTheyMayFollow(t *testing.T) {
	const vlan = 1400
	link := nl.Link{Index: 1, Name: "eth0", MTU: 1500, GROMaxBytes: 65536, GSOMaxBytes: 65536}
	above := nl.Link{Index: 2, Name: "eth0.7", ParentIndex: 1, Kind: "vlan", MTU: vlan}
	failed := errors.New("no answer")
	for _, test := range []struct {
		attribute string
		value     int
		lists     int
		refused   bool
	}{
		{"mtu", link.MTU, 0, false},
		{"mtu", 9000, 0, false},
		{"mtu", vlan, 1, false},
		{"mtu", vlan - 1, 1, true},
		{"txqueuelen", 10, 0, false},
		{"gro_max_size", 65536, 0, false},
		{"gso_max_size", 65536, 0, false},
	} {
		lists := 0
		err := lossless(&link, func() ([]nl.Link, error) {
			lists++
			return []nl.Link{link, above}, nil
		}, test.attribute, test.value)
		if lists != test.lists || errors.Is(err, knob.ErrNotSupported) != test.refused {
			t.Errorf("%s %d: %d lists, error %v; want %d, refused %v", test.attribute, test.value, lists, err,
				test.lists, test.refused)
		}
	}
	if err := lossless(&link, func() ([]nl.Link, error) { return nil, failed }, "mtu", vlan); !errors.Is(err, failed) {
		t.Errorf("a list that failed: %v", err)
	}
}
