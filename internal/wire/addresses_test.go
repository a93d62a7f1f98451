package wire_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/wire"
)

// TestReachableAddresses orders the addresses of a host as its administrator would name them.
func TestReachableAddresses(t *testing.T) {
	addresses := func(texts ...string) []netip.Addr {
		var all []netip.Addr
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	for _, tc := range []struct {
		name                    string
		present, outgoing, want []netip.Addr
	}{
		{"one NIC", addresses("192.0.2.7", "2001:db8::7", "fe80::1"), addresses("192.0.2.7", "2001:db8::7"),
			addresses("192.0.2.7", "2001:db8::7")},
		{"default route on the second NIC", addresses("172.17.0.1", "10.0.0.5", "198.51.100.3"),
			addresses("198.51.100.3"), addresses("198.51.100.3", "172.17.0.1", "10.0.0.5")},
		{"IPv6 alone", addresses("fe80::2", "2001:db8::2"), addresses("2001:db8::2"), addresses("2001:db8::2")},
		{"no default route", addresses("2001:db8::9", "10.0.0.5"), nil, addresses("10.0.0.5", "2001:db8::9")},
		{"no address that others know", addresses("fe80::1", "169.254.3.4"), nil, nil},
		{"an address that has gone", addresses("10.0.0.5"), addresses("10.0.0.6"), addresses("10.0.0.5")},
	} {
		if got := wire.Reachable(tc.present, tc.outgoing); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestAddressesReachTheListener connects to each address that a listener names.
func TestAddressesReachTheListener(t *testing.T) {
	for _, on := range []string{":0", "0.0.0.0:0", "127.0.0.1:0"} {
		l, err := wire.Listen(t.Context(), on, wire.NewKey())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all := l.Addresses()
		if len(all) == 0 {
			t.Errorf("%s: no address", on)
		}
		for _, a := range all {
			c, err := net.Dial("tcp", netip.AddrPortFrom(a, uint16(l.Port())).String())
			if err != nil {
				t.Errorf("%s: %v", on, err)
				continue
			}
			c.Close()
		}
	}
}
