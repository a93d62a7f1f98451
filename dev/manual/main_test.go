package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDate takes the date of an epoch before that of the changelog; without either it is an error,
// because mandoc, man-db and lexgrog complain of a page without a date.
func TestDate(t *testing.T) {
	log := filepath.Join(t.TempDir(), "CHANGELOG.md")
	text := "# Changelog\n\n## 0.2.0 — 2026-12-01\n\n- x\n\n## 0.1.0 — 2026-11-23\n"
	if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ epoch, log, want string }{
		{"", log, "2026-12-01"}, {"1795651200", log, "2026-11-26"}, {"1795651200", "nowhere", "2026-11-26"},
		{"", "nowhere", ""}, {"soon", log, ""}, {"", "main.go", ""},
	} {
		if got, err := dateOf(c.epoch, c.log); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q, %s: %q, %v; want %q", c.epoch, c.log, got, err, c.want)
		}
	}
	if _, err := dateOf("", "../../CHANGELOG.md"); err != nil {
		t.Error(err)
	}
}

// help is a program whose help has what a formatter trips over.
const help = `Show what 'tool' knows: a dash - , an arrow → , \fBno bold\fR, 3×4 and ten words more that make the line long.
.so is no request, nor is it one at the start of any other line that a filled text is broken into, such as .here

  kept lines  'as they are'
  .of an example

Usage:
  tool [flags]

Flags:
      --rate RATE   packets, at 10 µs; 'none' is none, and this explanation is long enough for two lines of a page at least

EXIT STATUS
  0 ok · 1 failed
`

// TestPagesAreClean writes a page of every construct and asks mandoc, where it is at hand, for
// anything above style in it, and for any line that it finds too long in running text.
func TestPagesAreClean(t *testing.T) {
	m := manual{name: "tool", date: "2026-11-26", pages: map[string]string{}, ask: func(args ...string) (string, error) {
		switch {
		case args[0] == "version":
			return "tool 1.0.0\n", nil
		case args[0] == "help":
			return "Topics:\n", nil
		}
		return help, nil
	}}
	if err := m.all(); err != nil {
		t.Fatal(err)
	}
	page := m.pages["tool.1"]
	kept := false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == ".nf" || line == ".fi":
			kept = line == ".nf"
		case !kept && len(line) > 80:
			t.Errorf("a line of %d bytes: %s", len(line), line)
		case strings.HasPrefix(line, "'"), strings.HasPrefix(line, ".so"), strings.HasPrefix(line, ".here"),
			strings.HasPrefix(line, ".of"), strings.Contains(line, `\fBno`),
			strings.ContainsFunc(line, func(r rune) bool { return r > '~' }):
			t.Errorf("roff reads %q", line)
		}
	}
	if !strings.HasPrefix(page, `.TH TOOL 1 "2026-11-26"`) {
		t.Errorf("no date: %.60s", page)
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Log("mandoc is not at hand")
		return
	}
	file := filepath.Join(t.TempDir(), "tool.1")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	said, _ := exec.Command(mandoc, "-T", "lint", "-W", "warning", file).CombinedOutput() // its status repeats the text
	if len(said) > 0 {
		t.Errorf("mandoc -T lint:\n%s", said)
	}
}
