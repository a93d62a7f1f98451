package ethtool

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// TestNetnsMessageLevel sets the message level of a tap, beside ethtool(8): of virtual devices, it
// alone has one. None of them wakes a host.
func TestNetnsMessageLevel(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.AddTap(t, "tap0")
		for _, level := range []uint32{0x35, 0x7fff, 0} {
			nltest.Must(t, c.SetMessageLevel("tap0", level))
			out, _ := nltest.OtherSays(t, "ethtool", "tap0")
			got, err := c.MessageLevel("tap0")
			theirs, _, _ := strings.Cut(nltest.Pairs(out)["Current message level"], " ")
			if err != nil || got != level || theirs != fmt.Sprintf("%#08x", level) {
				t.Errorf("set %#x: %#x, %v here; %q there", level, got, err, theirs)
			}
		}
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		if level, err := c.MessageLevel("v0"); !errors.Is(err, nl.ErrNotSupported) {
			t.Errorf("message level of a veth: %#x, %v", level, err)
		}
		if w, err := c.Wake("v0"); !errors.Is(err, nl.ErrNotSupported) {
			t.Errorf("wake-on-lan of a veth: %+v, %v", w, err)
		}
		for _, on := range []uint32{1 << 5, WakeMagicSecure} {
			if err := c.SetWake("v0", on); !errors.Is(err, nl.ErrNotSupported) {
				t.Errorf("wake-on-lan %#x of a veth: %v", on, err)
			}
		}
	})
}
