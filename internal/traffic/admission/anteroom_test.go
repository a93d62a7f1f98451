package admission

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func TestAnteroom(t *testing.T) {
	a := NewAnteroom(3, 2)
	dropped := make(map[string]bool)
	enter := func(from string, want bool) func() {
		t.Helper()
		leave, ok := a.Enter(netip.MustParseAddr(from), func() { dropped[from] = true })
		if ok != want {
			t.Errorf("%s: %v, want %v", from, ok, want)
		}
		return leave
	}
	first := enter("2001:db8:0:1::1", true)
	second := enter("2001:db8:0:2::2", true)
	enter("2001:db8:0:3::3", false) // the same /48
	third := enter("192.0.2.1", true)
	fourth := enter("192.0.2.2", true) // full: the source with the most loses its oldest
	if !dropped["2001:db8:0:1::1"] || len(dropped) != 1 {
		t.Errorf("dropped %v", dropped)
	}
	first() // of a place that it has lost
	fifth := enter("::ffff:192.0.2.1", true)
	if !dropped["2001:db8:0:2::2"] || len(dropped) != 2 { // all have one: the oldest of all
		t.Errorf("dropped %v", dropped)
	}
	enter("192.0.2.1", false) // the same source as with its prefix
	for _, leave := range []func(){second, third, third, fourth, fifth} {
		leave()
	}
	if len(a.waiting) != 0 || len(a.count) != 0 {
		t.Errorf("left behind: %d, %v", len(a.waiting), a.count)
	}
}

// TestAnteroomIsNotLockedByManySources has silent connections of ever new sources, as many as one
// site has networks, and clients among them that take a turn to say what they want: none is
// refused, and none is dropped before a whole anteroom of others has come.
func TestAnteroomIsNotLockedByManySources(t *testing.T) {
	const places = 256
	a := NewAnteroom(places, places/4)
	r := rand.New(rand.NewPCG(1, 2))
	silent := func(i int) netip.Addr {
		b := netip.MustParseAddr("2001:db8::").As16()
		if i%2 == 0 { // one site with all its networks, and then as many sites
			binary.BigEndian.PutUint16(b[6:], uint16(i))
		} else {
			binary.BigEndian.PutUint32(b[2:], uint32(i))
		}
		return netip.AddrFrom16(b)
	}
	for i := range 20_000 {
		a.Enter(silent(i), func() {})
		if i%50 != 0 {
			continue
		}
		lost := false
		leave, ok := a.Enter(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), func() { lost = true })
		if !ok {
			t.Fatalf("refused after %d silent connections", i+1)
		}
		for range r.IntN(places / 2) {
			i += 2
			a.Enter(silent(1_000_000+i), func() {})
		}
		if lost {
			t.Fatalf("dropped after %d silent connections", i+1)
		}
		leave()
	}
	if len(a.waiting) > places {
		t.Errorf("%d connections wait", len(a.waiting))
	}
}
