package live_test

import (
	"errors"
	"io/fs"
	"os/exec"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// A change under an alternative name is refused by the backend too, for changes that no user types;
// what was changed under one can still be read and put back.
func TestAlternativeNameIsNotChanged(t *testing.T) {
	const long = "interface-with-a-very-long-name"
	ns := knobtest.NewNetNS(t)
	ns.Do(t, func() {
		ip := func(args ...string) {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Errorf("ip: %v: %s", err, out)
			}
		}
		ip("link", "add", "br0", "type", "bridge")
		for _, name := range []string{"ens3", long} {
			ip("link", "property", "add", "dev", "br0", "altname", name)
			if own := live.OwnName(name); own != "br0" {
				t.Errorf("own name of %s: %q", name, own)
			}
			id := knob.ID("link:" + name + "/mtu")
			err := live.New().CheckWrite(t.Context(), id, "1400")
			var other live.OtherName
			if !errors.As(err, &other) || other.Own != "br0" || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("check %s: %v", id, err)
			}
		}
		for _, name := range []string{"", "br0", "lo", "nope0"} {
			if own := live.OwnName(name); own != "" {
				t.Errorf("own name of %q: %q", name, own)
			}
		}
		if err := live.New().Write(t.Context(), "link:ens3/mtu", "1400"); err != nil {
			t.Errorf("put back: %v", err)
		}
		if v, err := live.New().Read(t.Context(), "link:ens3/mtu"); v != "1400" || err != nil {
			t.Errorf("read: %q, %v", v, err)
		}
	})
}
