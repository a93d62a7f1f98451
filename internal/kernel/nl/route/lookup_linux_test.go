package route

import (
	"errors"
	"io/fs"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// The probed addresses lie inside the prefix, spread over it, and never name this host or a group.
func TestProbes(t *testing.T) {
	for _, s := range []string{
		"0.0.0.0/0", "::/0", "10.0.0.0/8", "10.20.0.0/15", "192.0.2.0/24", "192.0.2.64/27", "192.0.2.1/32",
		"128.0.0.0/1", "2001:db8::/32", "2001:db8::1/128", "fd00::/7",
	} {
		p := netip.MustParsePrefix(s).Masked()
		all := probes(p)
		if len(all) == 0 {
			t.Errorf("%s: no address to probe", p)
		}
		seen := make(map[netip.Addr]bool)
		for _, a := range all {
			if !p.Contains(a) || a.IsUnspecified() || seen[a] {
				t.Errorf("%s: %s, all %v", p, a, all)
			}
			seen[a] = true
		}
		if p.IsSingleIP() && (len(all) != 1 || all[0] != p.Addr()) {
			t.Errorf("%s: %v", p, all)
		}
	}
}

// A route is found if longer routes hide all or part of it, and if its link has no carrier. A
// missing route is not found.
func TestNetnsRouteLookup(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		nltest.Must(t, c.SetUp("v0"))
		nltest.Must(t, c.SetUp("v1"))
		nltest.Must(t, c.AddAddress("v0", "10.1.0.1/24"))
		nltest.Must(t, c.AddAddress("v0", "fd01::1/64"))
		for i, r := range []Route{
			{Destination: "default", Gateway: "10.1.0.2"},
			{Destination: "::/0", Gateway: "fd01::2"},
			{Destination: "10.64.0.0/10", Gateway: "10.1.0.2"}, // partly hidden
			{Destination: "10.127.255.0/24", Gateway: "10.1.0.2"},
			{Destination: "172.16.0.0/12", Gateway: "10.1.0.2"}, // entirely hidden
			{Destination: "172.16.0.0/13", Gateway: "10.1.0.2"},
			{Destination: "172.24.0.0/13", Gateway: "10.1.0.2"},
			{Destination: "10.1.0.9/32", Gateway: "10.1.0.2"},
			{Destination: "2001:db8::/32", Gateway: "fd01::2"},
		} {
			r.Window = 1000 + i
			nltest.Must(t, c.routes.Add(r))
			got, err := c.routes.Get(r.Destination)
			if err != nil || got.Destination != r.Destination || got.Window != r.Window || got.Gateway != r.Gateway ||
				got.Interface != "v0" {
				t.Errorf("%s: %+v, %v", r.Destination, got, err)
			}
		}
		for destination, hidden := range map[string]bool{"default": false, "::/0": false, "10.64.0.0/10": false,
			"172.16.0.0/12": true, "2001:db8::/32": false} {
			p, err := parseDestination(destination)
			nltest.Must(t, err)
			if _, ok := c.routes.k.probe(p); ok == hidden {
				t.Errorf("%s: found without a dump: %v", destination, ok)
			}
		}
		// Of two routes, the one in use has the lower priority value.
		nltest.Must(t, c.routes.Add(Route{Destination: "10.64.0.0/10", Gateway: "10.1.0.3", Priority: 7, Window: 77}))
		if r, err := c.routes.Get("10.64.0.0/10"); err != nil || r.Window != 1002 {
			t.Errorf("of two routes: %+v, %v", r, err)
		}
		// With the far end down, the route remains in the table.
		nltest.Must(t, c.SetDown("v1"))
		if r, err := c.routes.Get("10.64.0.0/10"); err != nil || r.Window != 1002 {
			t.Errorf("without carrier: %+v, %v", r, err)
		}
		for _, missing := range []string{"10.64.0.0/11", "192.0.2.0/24", "fd02::/64", "10.1.0.1/32", "127.0.0.0/8"} {
			if _, err := c.routes.Get(missing); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", missing, err)
			}
		}
		if err := c.routes.SetCongestion("default", "no-such-algorithm"); !errors.Is(err, unix.EINVAL) {
			t.Errorf("unknown algorithm: %v", err)
		}
	})
}
