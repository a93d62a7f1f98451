package live_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// Every entry of the catalogue reads on this machine in the form that its definition has, or says
// why not, by one of the three answers and no other. What a pattern stands for is what the machine
// has; of a kind that it has none of a name is made up.
func TestEveryKnobAnswers(t *testing.T) {
	host := live.New()
	madeUp := map[string]string{
		knob.KindRoute: "198.51.100.0/24", knob.KindIRQ: "99999", knob.KindNFS: "/nowhere",
		knob.KindPCI: "ffff:ff:1f.7", knob.KindBlock: "sdzz", knob.KindCPU: "99999",
		knob.KindQueue: "eth-none/rx-0", knob.KindNamed: "/nowhere", knob.KindUnbound: "/nowhere",
		knob.KindKresd: "/nowhere",
	}
	for _, d := range knob.Catalogue().All() {
		ids, err := host.Instances(t.Context(), d)
		if err != nil && !errors.Is(err, knob.ErrNotSupported) && !errors.Is(err, fs.ErrNotExist) &&
			!errors.Is(err, fs.ErrPermission) {
			t.Errorf("list %s: %v", d.Pattern, err)
		}
		if len(ids) == 0 {
			subject := madeUp[d.Pattern.Kind()]
			if subject == "" {
				subject = "eth-none"
			}
			ids = []knob.ID{knob.ID(d.Pattern.Kind() + ":" + subject + "/" + d.Pattern.Attribute())}
		}
		for _, id := range ids[:min(len(ids), 4)] {
			v, err := host.Read(t.Context(), id)
			answers := 0
			for _, is := range []error{fs.ErrNotExist, fs.ErrPermission, knob.ErrNotSupported} {
				if errors.Is(err, is) {
					answers++
				}
			}
			switch {
			case err != nil && answers != 1:
				t.Errorf("%s: %v gives %d of the three answers", id, err, answers)
			case err == nil:
				if c, err := d.Canonical(v); err != nil || c != v {
					t.Errorf("%s reads %q, which its definition makes %q, %v", id, v, c, err)
				}
			}
		}
	}
}
