package evidence

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host"
)

// TestBufferLevels checks that levels rise, hold 1, 2 and 4 times the target, keep the other
// fields, and never exceed the cap.
func TestBufferLevels(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name    string
		present string
		target  float64
		want    []knob.Value
	}{
		{"gigabit over 20 ms", "4096 131072 6291456", 2.5e6,
			[]knob.Value{"4096 131072 10485760", "4096 131072 20971520"}},
		{"small ones in steps of 64 KiB", "4096 87380 131072", 1e5,
			[]knob.Value{"4096 87380 262144", "4096 87380 458752", "4096 87380 851968"}},
		{"the cap ends the ladder", "4096 87380 131072", 100 * mib,
			[]knob.Value{"4096 87380 209715200", "4096 87380 268435456"}},
		{"large enough already", "4096 131072 33554432", 2.5e6, nil},
		{"a step too small to try", "4096 131072 9437184", 2.25 * mib, []knob.Value{"4096 131072 18874368"}},
		{"not three fields", "131072", 1e6, nil},
		{"not a number", "a b c", 1e6, nil},
		{"no target", "4096 87380 131072", 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, BufferLevels(c.present, c.target, 0.5)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUsableWindow(t *testing.T) {
	for _, c := range []struct {
		kernel, scale string
		want          float64
	}{
		{"6.18.44-amd64", "2", 0.5},   // the setting has no effect any more
		{"6.5.0", "2", 0.75},          // 1 − 1/4
		{"6.1.0-28-amd64", "1", 0.5},  // the old default
		{"5.10.0", "-2", 0.25},        // space >> 2
		{"not a version", "1", 0.5},   // unknown counts as old
		{"6.6.0-rc1", "-2", 0.5},      // the first with the learned ratio
		{"10.0.0", "-2", 0.5},         // numbers, not text
		{"4.19.0", "nonsense", 0.5},   // unreadable setting
		{"4.19.0", "", 0.5},           // setting unknown
		{"4.4.0-generic", "3", 0.875}, // 1 − 1/8
	} {
		s := &host.Snapshot{Kernel: c.kernel}
		if c.scale != "" {
			s.Settings = []host.Setting{{Knob: TCPAdvWinScale, Value: c.scale}}
		}
		if got := UsableWindow(End{Host: s}); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("kernel %s, adv_win_scale %q: %v, want %v", c.kernel, c.scale, got, c.want)
		}
	}
}

// TestCombine checks that more evidence never lowers confidence, and that none reaches certainty.
func TestCombine(t *testing.T) {
	if got := Combine(0.5, 0.5); got != 0.75 {
		t.Errorf("two halves make %v", got)
	}
	if got := Combine(0.9, 0.9, 0.9, 1); got != 0.98 {
		t.Errorf("overwhelming evidence makes %v", got)
	}
	if got := Combine(0, 0); got != 0 {
		t.Errorf("no evidence makes %v", got)
	}
	before := 0.0
	for _, extra := range []float64{0, 0.1, 0.3, 0.9} {
		if now := Combine(0.4, extra); now < before {
			t.Errorf("evidence of %v lowers confidence from %v to %v", extra, before, now)
		} else {
			before = now
		}
	}
}

// TestTowards checks which NIC carries the flow.
func TestTowards(t *testing.T) {
	card := func(name string, addresses ...string) host.Interface {
		return host.Interface{Name: name, Up: true, Carrier: true, Addresses: addresses}
	}
	near := &host.Snapshot{
		Interfaces: []host.Interface{card("lo", "127.0.0.1/8"), card("mgmt", "192.168.1.5/24"),
			card("docker0", "172.17.0.1/16"), card("data", "10.0.0.1/24")},
		Routes: []host.Route{
			{Destination: "default", Gateway: "192.168.1.1", Interface: "mgmt"},
			{Destination: "10.9.0.0/16", Gateway: "10.0.0.254", Interface: "data", WindowBytes: 65536},
			{Destination: "2001:db8::/32", Interface: "mgmt"},
		},
	}
	far := func(addresses ...string) *host.Snapshot {
		return &host.Snapshot{Interfaces: []host.Interface{card("lo", "127.0.0.1/8"), card("docker0", "172.17.0.1/16"),
			card("eth0", addresses...)}}
	}
	for _, c := range []struct {
		name, address, want string
		window              int
		far                 *host.Snapshot
	}{
		{"connected network", "", "data", 0, far("10.0.0.2/24")},
		{"through a router, with a window metric", "", "data", 65536, far("10.9.3.4/24")},
		{"only the default route leads there", "", "mgmt", 0, far("203.0.113.9/24")},
		{"the specific address wins over the default route", "", "data", 65536, far("203.0.113.9/24", "10.9.3.4/24")},
		{"an IPv6 prefix is not longer than an IPv4 one", "", "data", 65536, far("10.9.3.4/24", "2001:db8::9/64")},
		{"the known address decides", "203.0.113.9:7070", "mgmt", 0, far("10.0.0.2/24")},
		{"the known address alone", "10.0.0.2", "data", 0, nil},
		{"nothing known", "", "", 0, nil},
		{"only shared addresses", "", "", 0,
			&host.Snapshot{Interfaces: []host.Interface{card("docker0", "172.17.0.1/16")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, routes := towards(near, c.far, c.address)
			name, window := "", 0
			if got != nil {
				name = got.Name
			}
			for _, r := range routes {
				window = max(window, r.WindowBytes)
			}
			if name != c.want || window != c.window {
				t.Errorf("card %q with window %d, want %q with %d", name, window, c.want, c.window)
			}
		})
	}
	if c, r := towards(nil, near, ""); c != nil || r != nil {
		t.Error("found a card on an unknown host")
	}
}
