package matrix

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/lab/guest"
)

// Scenarios with equal options share one guest, so complete must return equal options for them.
func TestComplete(t *testing.T) {
	pair := []guest.Card{{Model: "rtl8139,x=1", Wire: 1}, {Model: "rtl8139", Wire: 1}}
	options := guest.Options{Cards: pair, Modules: []string{"bonding miimon=100"}, Programs: []string{"ethtool"}}
	got := complete(options)
	if got.CPUs != 2 || got.MemoryBytes != groundMemory {
		t.Errorf("%d processors, %d bytes", got.CPUs, got.MemoryBytes)
	}
	count := func(list []string, what string) (n int) {
		for _, x := range list {
			if x == what {
				n++
			}
		}
		return n
	}
	if count(got.Modules, "8139cp") != 1 || count(got.Modules, "veth") != 1 ||
		got.Modules[len(got.Modules)-1] != "bonding miimon=100" {
		t.Errorf("modules %q", got.Modules)
	}
	if !slices.Contains(got.Programs, "nft") || got.Programs[len(got.Programs)-1] != "ethtool" {
		t.Errorf("programs %q", got.Programs)
	}
	if again := complete(options); !cmp.Equal(got, again) {
		t.Errorf("the second call returns other options:\n%s", cmp.Diff(got, again))
	}
}

// A module named with parameters must not be loaded earlier without them.
func TestCompleteKeepsParameters(t *testing.T) {
	got := complete(guest.Options{Counted: true, Cards: []guest.Card{{Model: "e1000"}},
		Modules: []string{"e1000 InterruptThrottleRate=8000"}})
	if slices.Contains(got.Modules, "e1000") || got.CPUs != 1 {
		t.Errorf("%d processors, modules %q", got.CPUs, got.Modules)
	}
}
