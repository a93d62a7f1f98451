package worldtest_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/report"
)

// TestLabTuneNulls tries knobs without an effect in a sound world. At most one in twenty of these
// may be kept, so two of two would show a bias, and one is chance. `linerate lab tune --null 40` is
// the long form.
func TestLabTuneNulls(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Long)
	t.Parallel()
	for {
		c := labTune(t, "--null", "2", "--out", filepath.Join(t.TempDir(), "tunes"))
		if c.After == nil && len(c.Warnings) > 0 && mayRepeat(t) { // a command failed
			t.Logf("not judged: %s, %q", c.Reason, c.Warnings)
			continue
		}
		if !c.Undone || len(c.Kept) > 1 {
			t.Fatalf("%+v", c)
		}
		if c.Trials == 2 {
			return
		}
		// Fewer trials are a refusal, which the tune explains.
		if c.Ended == "" || !mayRepeat(t) {
			t.Fatalf("%d trials, ended by %q: %+v", c.Trials, c.Ended, c)
		}
		t.Logf("refused: %s", c.Ended)
	}
}

// labTune runs one case of `linerate lab tune`. The exit status also judges figures that depend on
// the machine, so it does not count.
func labTune(t *testing.T, args ...string) report.TuneMatrixCase {
	t.Helper()
	out, status := play(t, append([]string{"lab", "tune", "--json"}, args...)...)
	var d report.TuneMatrixDocument
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Cases) != 1 || d.Cases[0].Skipped {
		t.Fatalf("%d cases, want one that was played\n%s", len(d.Cases), out)
	}
	t.Logf("exit status %d: %+v", status, d.Cases[0])
	return d.Cases[0]
}

func TestLabTuneFlags(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--level", "heavy"}, 2, "mild plain gross"},
		{[]string{"--level", ""}, 2, "--level: a value is missing"},
		{[]string{"--ground", "moon"}, 2, "namespace"},
		{[]string{"--only", "("}, 2, "--only"},
		{[]string{"--only", "^policer$"}, 2, "that a knob can repair"},
		{[]string{"--runs", "0"}, 2, "--runs"},
		{[]string{"--budget", "0s"}, 2, "--budget"},
		{[]string{"--max-trials", "0"}, 2, "--max-trials"},
		{[]string{"--null", "41"}, 2, "from 1 to 40"},
		{[]string{"--list", "--only", "^send-buffer$"}, 0, "The sender's buffer is too small for"},
		{[]string{"--list", "--json", "--ground", "guest"}, 0, `"scenario":"guest-moderation"`},
	} {
		var out, errw bytes.Buffer
		status := cli.Main(append([]string{"linerate", "lab", "tune"}, c.args...), strings.NewReader(""), &out, &errw)
		if status != c.status || !strings.Contains(out.String()+errw.String(), c.want) {
			t.Errorf("%v: status %d, %s%s", c.args, status, &out, &errw)
		}
	}
}
