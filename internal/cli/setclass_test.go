package cli

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestClassOfAChange has settings that disturb more than the user allowed, some on the interface
// that carries the user's session.
func TestClassOfAChange(t *testing.T) {
	for _, tc := range []struct {
		allow   string
		confirm bool
		knob    knob.ID
		refused string // part of the reason; empty: allowed
	}{
		{"d1", true, "sysctl:net.ipv4.tcp_rmem", ""},
		{"d1", false, "link:eth0/mtu", "class d2, allowed is d1"},
		{"d2", true, "link:eth0/mtu", ""},
		{"d2", false, "ethtool:eth1/link.mode", "class d3, allowed is d2"},
		{"d2", false, "ethtool:eth0/link.mode", "and eth0 carries your session"},
		{"d3", false, "ethtool:eth0/link.mode", ""},
		{"d3", true, "ethtool:eth1/link.mode", ""},
		{"d3", true, "ethtool:eth0/link.mode", "takes the link down, and eth0 carries your session"},
		{"d0", false, "sysctl:net.ipv4.tcp_congestion_control", "class d1, allowed is d0"},
		{"d3", false, "module:e1000e/RxIntDelay", "and takes eth7, eth8 away for some seconds"},
		{"d4", true, "module:e1000e/RxIntDelay", ""},
		{"d4", false, "module:e1000/RxIntDelay", "it loads the driver of eth0 anew, which carries your session"},
	} {
		c, err := newClassCheck(tc.allow, tc.confirm)
		if err != nil {
			t.Fatal(err)
		}
		c.carries = func() []string { return []string{"bond0", "eth0"} }
		c.missing = func(string, string) error { return nil }
		c.another = c.missing
		c.displaces = func(id knob.ID) []string {
			return map[string][]string{"e1000": {"eth0", "eth9"}, "e1000e": {"eth7", "eth8"}}[id.Subject()]
		}
		err = c.check([]knob.Setting{{Knob: "sysctl:net.ipv4.tcp_sack", Value: "1"}, {Knob: tc.knob, Value: "x"}})
		if tc.knob == "sysctl:net.ipv4.tcp_congestion_control" {
			err = c.check([]knob.Setting{{Knob: tc.knob, Value: "x"}})
		}
		switch {
		case tc.refused == "" && err != nil:
			t.Errorf("%+v: %v", tc, err)
		case tc.refused != "" && (!errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%+v: %v", tc, err)
		case err != nil && hintOf(err) == "":
			t.Errorf("%+v: no hint", tc)
		}
	}
	c, err := newClassCheck("d4", false)
	if err != nil {
		t.Fatal(err)
	}
	another := errors.New("another name of eth0")
	c.another = func(_, name string) error {
		if name == "ens3" {
			return another
		}
		return nil
	}
	if err := c.check([]knob.Setting{{Knob: "ethtool:ens3/link.mode", Value: "x"}}); !errors.Is(err, another) {
		t.Errorf("another name of the interface of the session: %v", err)
	}
	if _, err := newClassCheck("d5", false); err == nil {
		t.Error("d5 is no class")
	}
}
