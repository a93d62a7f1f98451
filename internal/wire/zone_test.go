package wire_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/wire"
)

// TestZoneAdvice has addresses that are of one link, with and without their interface.
func TestZoneAdvice(t *testing.T) {
	for _, c := range []struct{ address, said string }{
		{"[fe80::1]:7070", "fe80::1%eth0"},
		{"[fe80::1%eth1]:7070", ""},
		{"[2001:db8::1]:7070", ""},
		{"169.254.0.1:7070", ""}, // of one link too, and IPv4 has no zones
		{"far:7070", ""},
		{"", ""},
	} {
		got := wire.ZoneAdvice(c.address)
		if !strings.Contains(got, c.said) || (c.said == "") != (got == "") {
			t.Errorf("%q: %q, want %q", c.address, got, c.said)
		}
	}
}
