package cli_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/report"
)

// TestLabTune tunes one fault whole, and tries a few knobs without an effect. What fails by chance
// of the machine fails once, what is wrong fails twice; the long forms, all faults and forty knobs,
// are `linerate lab tune` itself.
func TestLabTune(t *testing.T) {
	for name, args := range map[string][]string{
		"fault": {"--only", "^" + tunedElsewhere + "$", "--out", filepath.Join(t.TempDir(), "tunes")},
		"nulls": {"--null", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := labTune(t, args...)
			if !d.Pass || d.Skips > 0 {
				t.Logf("once: %+v", d.Cases)
				d, _ = labTune(t, args...)
			}
			c := d.Cases[0]
			if !d.Pass || d.Skips > 0 || !c.Undone || c.Trials == 0 {
				t.Errorf("%+v", c)
			}
			if name == "nulls" && (c.Trials != 3 || len(c.Kept) > 0) {
				t.Errorf("%d knobs without an effect tried, kept: %v", c.Trials, c.Kept)
			}
		})
	}
}

func labTune(t *testing.T, args ...string) (d report.TuneMatrixDocument, status int) {
	t.Helper()
	var out, errw bytes.Buffer
	status = cli.Main(append([]string{"linerate", "lab", "tune", "--json"}, args...), strings.NewReader(""),
		&out, &errw)
	if err := report.Validate(out.Bytes()); err != nil {
		t.Fatalf("exit status %d, %v\n%s%s", status, err, &out, &errw)
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Cases) != 1 {
		t.Fatalf("%d cases, want one\n%s", len(d.Cases), &out)
	}
	return d, status
}

func TestLabTuneFlags(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--level", "heavy"}, 2, "mild plain gross"},
		{[]string{"--level", ""}, 2, "mild plain gross"},
		{[]string{"--ground", "moon"}, 2, "namespace"},
		{[]string{"--only", "("}, 2, "--only"},
		{[]string{"--only", "^policer$"}, 2, "that a knob can mend"},
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
