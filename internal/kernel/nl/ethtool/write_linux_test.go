package ethtool

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Written sets read back the same: without a mask the listed bits, with a mask the set ones.
func TestBitsetsComeBack(t *testing.T) {
	for name, fill := range map[string]func(*netlink.AttributeEncoder){
		"names": func(ae *netlink.AttributeEncoder) {
			names(ae, unix.ETHTOOL_A_LINKMODES_OURS, []string{"100baseT/Full", "TP"})
		},
		"negotiate": negotiate([]string{"10baseT/Half", "100baseT/Full", "TP"}, []string{"100baseT/Full", "TP"}),
	} {
		ae := netlink.NewAttributeEncoder()
		fill(ae)
		b, err := ae.Encode()
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseLinkModes(b)
		if err != nil || !slices.Equal(m.Advertised, []string{"100baseT/Full", "TP"}) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if name == "negotiate" && (!m.Autoneg || !slices.Contains(m.Supported, "10baseT/Half")) {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// A wanted mode is checked against the NIC, and entries that are not speeds are never requested.
func TestLinkModeRequests(t *testing.T) {
	card := LinkModes{Autoneg: true, Supported: []string{"1000baseT/Full", "100baseT/Full", "Autoneg", "Pause", "TP"},
		Advertised: []string{"100baseT/Full", "Pause", "TP"}}
	if supported, offered := card.Speeds(); !slices.Equal(supported, []string{"1000baseT/Full", "100baseT/Full"}) ||
		!slices.Equal(offered, []string{"100baseT/Full"}) {
		t.Errorf("speeds: %v, %v", supported, offered)
	}
	for _, c := range []struct {
		want LinkMode
		ok   bool
	}{
		{LinkMode{Autoneg: true, Modes: []string{"1000baseT/Full"}}, true},
		{LinkMode{Autoneg: true, Modes: nil}, true},
		{LinkMode{Autoneg: true, Modes: []string{"10baseT/Full"}}, false},
		{LinkMode{Autoneg: true, Modes: []string{"Pause"}}, false},
		{LinkMode{SpeedMegabits: 100, Duplex: "full"}, true},
		{LinkMode{SpeedMegabits: 100}, false},
		{LinkMode{Duplex: "half"}, false},
	} {
		if _, err := card.request(c.want); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.want, err)
		}
	}
}

// struct ethtool_tunable for a tunable of four bytes and for the one of two.
func TestTunableRequest(t *testing.T) {
	for which, want := range map[string]string{
		"rx-copybreak":        "4900000001000000030000000400000000010000",
		"pfc-prevention-tout": "490000000300000002000000020000000001",
	} {
		b, err := tunableRequest(unix.ETHTOOL_STUNABLE, which, 256)
		if err != nil || hex.EncodeToString(b) != want {
			t.Errorf("%s: %x, %v; want %s", which, b, err, want)
		}
	}
	if _, err := tunableRequest(unix.ETHTOOL_STUNABLE, "pfc-prevention-tout", 1<<16); err == nil {
		t.Error("a number that overflows was accepted")
	}
	if _, err := tunableRequest(unix.ETHTOOL_GTUNABLE, "colour", 0); err == nil {
		t.Error("an unknown tunable was accepted")
	}
}

func TestHashFieldLetters(t *testing.T) {
	for _, fields := range []string{"", "sd", "sdfn", "mvtsdfnr", "r"} {
		mask, err := fieldMask(fields)
		if err != nil || fieldLetters(mask) != fields {
			t.Errorf("%q: %#x, %v", fields, mask, err)
		}
	}
	if mask, err := fieldMask("nfds"); err != nil || fieldLetters(mask) != "sdfn" {
		t.Errorf("another order: %#x, %v", mask, err)
	}
	for _, bad := range []string{"x", "ss", "sd fn"} {
		if mask, err := fieldMask(bad); err == nil {
			t.Errorf("%q: %#x", bad, mask)
		}
	}
}
