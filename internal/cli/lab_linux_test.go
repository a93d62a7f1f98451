package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/report"
)

// tunedElsewhere is the scenario that TestLabTune plays, which asks more of it.
const tunedElsewhere = "send-buffer"

// played are the scenarios that TestLabRun plays: a limit of a host, one of the path, a full link, and nothing at all. A whole tune takes more than a
// minute; the others are judged by the matrix in every run of the tests, and tuned by `linerate lab tune`.
var played = []string{"receive-window", "path-loss", "link-rate", "healthy"}

// TestLabRun plays scenarios as a user does, one document a line, and each must pass: the right first finding; for tunable
// ones at least 90 % of the healthy figure after tuning; nothing kept where there is nothing to tune; every setting back. A world is real
// time on a real kernel, so a scenario that fails is played once more before the test does: what fails by chance of the machine
// fails once, what is wrong fails twice. Both results are logged.
//
// Where the hypervisor keeps taking the processors away, a tune says so and keeps nothing. That is then what has to be seen, with all settings back, by
// whoever reads the stolen time here and not by the word of the tune.
func TestLabRun(t *testing.T) {
	var lines []string
	var stolen []float64
	for _, name := range played {
		line, _, share := labRun(t, name)
		lines, stolen = append(lines, line...), append(stolen, share)
	}
	if len(lines) != len(played) {
		t.Fatalf("%d documents of %d scenarios", len(lines), len(played))
	}
	for i, line := range lines {
		d := labDocument(t, line)
		t.Run(d.Scenario, func(t *testing.T) {
			t.Log(line)
			if d.Pass {
				return
			}
			if strings.HasPrefix(d.Reason, "skipped: ") {
				t.Skip(d.Reason) // Debian's own kernels do not offer bbr to namespaces; CI runs where it is offered and accepts no skip
			}
			robbed, reason := stolen[i] > robbedRatio, d.Reason
			for range 3 {
				again, status, share := labRun(t, d.Scenario)
				if len(again) != 1 {
					t.Fatalf("%d documents of one scenario", len(again))
				}
				t.Log(again[0])
				d = labDocument(t, again[0])
				if d.Pass && status == 0 {
					return
				}
				// Only a machine that is robbed every time is tried more than once.
				if robbed = robbed && share > robbedRatio; !robbed {
					break
				}
			}
			if robbed && d.Skipped && strings.HasPrefix(d.Reason, "not judged: the bench is too disturbed") && len(d.Kept) == 0 {
				t.Logf("DISTURBED: %s was refused four times and never tuned, on a machine whose processor time is stolen: %s", d.Scenario, d.Reason)
				return
			}
			t.Errorf("does not pass, twice: %s, then %s", reason, d.Reason)
		})
	}
}

// robbedRatio is the stolen share of the processor time that was wanted, above which a machine counts as robbed. It bears witness and decides nothing: on one
// machine path-loss passed at 5 %, link-rate at 21 %, and path-loss was refused at 61 to 66 %.
const robbedRatio = 0.10

// labRun also gives the stolen share of the processor time that this machine wanted meanwhile, as /proc/stat has it.
func labRun(t *testing.T, name string) (lines []string, status int, stolen float64) {
	t.Helper()
	var out, errw bytes.Buffer
	before := processors(t)
	status = cli.Main([]string{"linerate", "lab", "run", "--json", name}, strings.NewReader(""), &out, &errw)
	if errw.Len() > 0 {
		t.Logf("standard error: %s", &errw)
	}
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	after := processors(t)
	if wanted := after.wanted - before.wanted; wanted > 0 {
		stolen = (after.stolen - before.stolen) / wanted
	}
	t.Logf("%s: %.1f %% of the processor time that was wanted was stolen", name, 100*stolen)
	return lines, status, stolen
}

// processorTime is that of all processors since boot, in ticks: what somebody wanted, and what of that the hypervisor gave to others.
type processorTime struct{ wanted, stolen float64 }

// processors reads the first line of /proc/stat: user nice system idle iowait irq softirq steal (proc_stat(5)).
func processors(t *testing.T) (p processorTime) {
	t.Helper()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	var user, nice, system, idle, iowait, irq, softirq, steal float64
	if _, err := fmt.Sscanf(string(b), "cpu %g %g %g %g %g %g %g %g", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		t.Fatal(err)
	}
	return processorTime{wanted: user + nice + system + irq + softirq + steal, stolen: steal}
}

// labDocument reads one linerate.lab/1 and holds it to its schema.
func labDocument(t *testing.T, line string) (d report.LabDocument) {
	t.Helper()
	if err := report.Validate([]byte(line)); err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	dec := json.NewDecoder(strings.NewReader(line))
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Fatalf("more than one document on a line: %s", line)
	}
	return d
}
