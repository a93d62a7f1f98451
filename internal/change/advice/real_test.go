package advice

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// realFile is one file of testdata/real.txt.
type realFile struct {
	os   OS
	name string
	text string
}

func realFiles() []realFile {
	data, err := os.ReadFile("testdata/real.txt")
	if err != nil {
		panic(err)
	}
	var files []realFile
	for _, block := range strings.Split(string(data), "@@ ")[1:] {
		head, body, _ := strings.Cut(block, "\n")
		system, name, _ := strings.Cut(head, " ")
		files = append(files, realFile{OS(system), name, body})
	}
	return files
}

// realJudgements returns what each of the real files gets on Linux 6.18, in their order. Several
// tests look at it, and it costs more than all of them.
var realJudgements = sync.OnceValue(func() (all [][]Judgement) {
	r, err := ParseRelease(Linux, "6.18")
	if err != nil {
		panic(err)
	}
	target := Target{Release: map[OS]Release{Linux: r}}
	for _, f := range realFiles() {
		a, err := Parse([]byte(f.text))
		if err != nil {
			panic(fmt.Errorf("%s: %w", f.name, err))
		}
		all = append(all, target.Judge(a))
	}
	return all
})

// handRow is one row of testdata/real.tsv: a setting, and what a person judged.
type handRow struct {
	os          OS
	knob, value string
}

// handJudged returns the verdicts that were made by hand.
func handJudged(t *testing.T) map[handRow]Verdict {
	t.Helper()
	data, err := os.ReadFile("testdata/real.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[handRow]Verdict{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Split(line, "\t")
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case len(f) != 5 || Verdict(f[3]).Rank() < 0 || f[4] == "":
			t.Fatalf("no row with a verdict and a reason: %q", line)
		}
		rows[handRow{OS(f[0]), f[1], f[2]}] = Verdict(f[3])
	}
	return rows
}

// TestRealFiles: of the distinct settings in real files, at least 98 of 100 get the verdict that a
// person gave them before this program did. docs/evidence/advice.md has the method.
func TestRealFiles(t *testing.T) {
	hand := handJudged(t)
	seen := map[handRow]bool{}
	right := 0
	files := realFiles()
	for i, f := range files {
		for _, j := range realJudgements()[i] {
			row := handRow{j.For, strings.TrimPrefix(j.Knob, "sysctl:"), j.Value}
			if j.Knob == "" || seen[row] {
				continue
			}
			seen[row] = true
			want, ok := hand[row]
			switch {
			case !ok:
				t.Errorf("%s, line %d: %s = %s is in no row of real.tsv", f.name, j.Line, row.knob, j.Value)
			case j.Verdict == want:
				right++
			default:
				t.Logf("%s: %s = %s is %s, by hand %s: %s", f.name, row.knob, j.Value, j.Verdict, want, j.Why)
			}
		}
	}
	for row := range hand {
		if !seen[row] {
			t.Errorf("%s %s = %s was not read in any file", row.os, row.knob, row.value)
		}
	}
	t.Logf("%d of %d distinct settings right, in %d files", right, len(seen), len(files))
	if len(files) < 60 || right*100 < len(seen)*98 {
		t.Errorf("%d of %d right in %d files, want 98 %% in 60", right, len(seen), len(files))
	}
}

// TestRealFilesUnderstood: few lines that set something are not understood, and few settings of the
// network get no verdict. The bound is a quarter of what the version before these files left out.
func TestRealFilesUnderstood(t *testing.T) {
	before := map[OS]int{Linux: 73, FreeBSD: 128, Windows: 108, Solaris: 32}
	hand := handJudged(t)
	missed := map[OS]map[string]bool{}
	miss := func(o OS, what string) {
		if missed[o] == nil {
			missed[o] = map[string]bool{}
		}
		missed[o][what] = true
	}
	for i, f := range realFiles() {
		for _, j := range realJudgements()[i] {
			row := handRow{j.For, strings.TrimPrefix(j.Knob, "sysctl:"), j.Value}
			switch {
			case j.Knob == "":
				miss(f.os, j.Text)
			case j.Verdict == Unknown && hand[row] != Unknown:
				miss(f.os, row.knob+" = "+row.value)
			}
		}
	}
	for o, most := range before {
		t.Logf("%s: %d not understood", o, len(missed[o]))
		if n := len(missed[o]); n*4 > most {
			t.Errorf("%s: %d not understood, want at most a quarter of %d: %v", o, n, most, missed[o])
		}
	}
}
