package tune

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/linerate/linerate/internal/profile"
)

// sampledWorld also samples the near host: a large send buffer makes its copies cheaper, and
// nothing else.
type sampledWorld struct {
	*world
	random *rand.Rand
}

func (w sampledWorld) Measure(ctx context.Context) (Observation, error) {
	o, err := w.world.Measure(ctx)
	copies := 60
	if number(w.near(wmem)) > 1000 {
		copies = 20
	}
	b := profile.NewBuilder("cycles", false)
	for name, n := range map[string]int{"_copy_from_iter": copies, "tcp_ack": 40} {
		b.Add(profile.Seen{Frames: []int{b.Frame(profile.Frame{Name: name})}, Offset: -1,
			Count: uint64(n + w.random.IntN(9) - 4)})
	}
	packets, bytes := uint64(1000), uint64(1500_000)
	p := b.Finish(profile.Window{BusySeconds: 0.1, PacketsBySlice: []float64{1000}, BytesBySlice: []float64{1500_000}})
	p.PacketsTotal, p.BytesTotal = &packets, &bytes
	o.Profiles = map[Side]*profile.Profile{Near: p}
	return o, err
}

// TestProfiles checks that each measured trial says where the processor time went: a change that
// saves copies names them, and a change that does nothing names nothing.
func TestProfiles(t *testing.T) {
	w := longFatPath()
	out, err := Run(t.Context(), configFor(w), sampledWorld{w, rand.New(rand.NewPCG(1, 2))}, w.tuneHosts(),
		longFatCandidates(), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, trial := range out.Trials {
		if trial.Pairs == 0 {
			continue
		}
		if len(trial.Profiles) != 1 || trial.Profiles[0].Side != Near || trial.Profiles[0].Unit != profile.UnitPerPacket ||
			trial.Profiles[0].SamplesBefore == 0 || trial.Profiles[0].SamplesAfter == 0 {
			t.Fatalf("%s %s: %+v", trial.Side, trial.Knob, trial.Profiles)
		}
		for _, r := range trial.Profiles[0].Work {
			saves := trial.Knob == wmem && trial.Verdict == Kept && r.Name == "copy"
			if saves {
				kept++
			}
			if saves && !(r.Differs && r.High < 0) || !saves && r.Differs && trial.Knob != wmem {
				t.Errorf("%s %s is %s: %+v", trial.Side, trial.Knob, trial.Verdict, r)
			}
		}
	}
	if kept != 1 || len(out.Profiles) != 1 || !out.Profiles[0].Differs {
		t.Errorf("%d kept trials name the copies; the kept set: %+v", kept, out.Profiles)
	}
}
