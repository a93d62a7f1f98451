package text

import (
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
)

// TestDeadlineHasItsDate checks that a time of day stands alone only where it is not ambiguous: a
// trial of a day or a century must not seem to end within the hour.
func TestDeadlineHasItsDate(t *testing.T) {
	made := time.Date(2026, 11, 26, 18, 21, 48, 0, time.Local)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{time.Minute, "goes back at 18:22:48 unless"}, {11 * time.Hour, "goes back at 05:21:48 unless"},
		{24 * time.Hour, "goes back at 2026-11-27 18:21:48 unless"},
		{999999 * time.Hour, "goes back at 2140-12-25 09:21:48 unless"},
	} {
		var b strings.Builder
		end := made.Add(c.after)
		p := &printer{w: &b, s: Style{}}
		p.stay([]journal.Change{{State: journal.Trial, Time: made, Deadline: &end}})
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("%v: %q, want %q", c.after, b.String(), c.want)
		}
	}
}

// TestUnexplainedLossOfAnotherProgram checks that the path is not blamed alone where the counters
// of the far end are unknown, as with the server of another program.
func TestUnexplainedLossOfAnotherProgram(t *testing.T) {
	for _, c := range []struct {
		remote string
		want   string
	}{{"", "path or far end"}, {"far", "path  "}} {
		var b strings.Builder
		r := traffic.Result{Test: traffic.UDP, Direction: traffic.Up,
			Losses: []drops.Loss{{Place: drops.OnPath, Packets: 7}}}
		r.Ends.Remote.Host = c.remote
		p := &printer{w: &b, s: Style{}}
		p.losses([]traffic.Result{r})
		if out := b.String(); !strings.Contains(out, c.want) || c.remote != "" && strings.Contains(out, "far end") {
			t.Errorf("far host %q: %s", c.remote, out)
		}
	}
}
