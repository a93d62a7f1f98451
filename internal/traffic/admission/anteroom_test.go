package admission

import (
	"net/netip"
	"testing"
)

func TestAnteroom(t *testing.T) {
	a := NewAnteroom(3, 2)
	enter := func(from string, want bool) func() {
		t.Helper()
		leave, ok := a.Enter(netip.MustParseAddr(from))
		if ok != want {
			t.Errorf("%s: %v, want %v", from, ok, want)
		}
		return leave
	}
	first := enter("2001:db8::1", true)
	second := enter("2001:db8::2", true)
	enter("2001:db8::3", false) // the same /64
	third := enter("192.0.2.1", true)
	enter("192.0.2.2", false) // full
	first()
	first()
	fourth := enter("::ffff:192.0.2.1", true) // the same source as without its prefix
	second()
	enter("192.0.2.1", false)
	third()
	fourth()
	if len(a.waiting) != 0 || a.sum != 0 {
		t.Errorf("left behind: %v, %d", a.waiting, a.sum)
	}
}
