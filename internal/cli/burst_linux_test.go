package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// burstWorld is two hosts joined by a veth pair, the far one of which serves.
func burstWorld(t *testing.T) *killWorld {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	running, err := lab.Up(t.Context(), scenario.World{Topology: scenario.Pair})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { running.Close() })
	k := &killWorld{Running: running, state: t.TempDir(), key: wire.NewKey().String()}
	stop, err := running.Serve(context.WithoutCancel(t.Context()), k.key, filepath.Join(k.state, "far"), &syncBuffer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return k
}

// burst measures from the near host and returns the one result.
func (k *killWorld) burst(t *testing.T, args ...string) traffic.Result {
	t.Helper()
	measure := k.command(t.Context(), k.Near(), append([]string{"measure", k.Far().Address, "--test", "burst", "--json",
		"--no-store"}, args...)...)
	var out, said bytes.Buffer
	measure.Stdout, measure.Stderr = &out, &said
	if err := measure.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	var d report.MeasureDocument
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Tests) != 1 || d.Tests[0].Burst == nil {
		t.Fatalf("%s", &out)
	}
	b := d.Tests[0].Burst
	t.Logf("held %d, lost at %d at %q, losses %v, bounds %+v, trains %v", b.HeldPackets, b.LostAtPackets, b.Place,
		b.Losses, b.Bounds, b.Trains)
	return d.Tests[0]
}

// Each case plants the queue that is too short for a train, and the test names it. The longest
// train is so long that no speed of this machine lets the planted queue keep up with it.
func TestBurstNamesTheQueueThatIsTooShort(t *testing.T) {
	t.Parallel()
	k := burstWorld(t)
	// A socket of the least size holds a handful of frames.
	r := k.burst(t, "--window", "4608")
	b := r.Burst
	if b.Place != drops.ReceiverSocket || b.LostAtPackets <= b.HeldPackets {
		t.Errorf("a short socket: %+v", b)
	}
	if bound, ok := b.At(drops.ReceiverSocket); !ok || bound.Packets != 4 {
		t.Errorf("the bound of the socket: %+v %v", bound, ok)
	}
	// The other way, from the far host's queue: eight frames, which drain in a tenth of a second.
	const limit = 8 * 1442
	for _, host := range []*lab.Host{k.Near(), k.Far()} {
		if err := host.Exec(t.Context(), "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1mbit",
			"burst", "1600", "limit", "11536").Run(); err != nil {
			t.Fatal(err)
		}
	}
	for _, direction := range []string{"", "--reverse"} {
		args := []string{"--bytes", "359k"} // 256 datagrams
		if direction != "" {
			args = append(args, direction)
		}
		b := k.burst(t, args...).Burst
		if b.Place != drops.SenderQdisc || b.HeldPackets < limit/1442/2 {
			t.Errorf("a short queue %s: %+v", direction, b)
		}
	}
}
