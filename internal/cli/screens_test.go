package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// screens names, for each command, the golden file of its text on terminals of 40, 60, 80, 100
// and 200 columns (internal/report/text, TestTerminals); a text in brackets says what holds the
// lines of a command without a document.
const screens = `
apply: apply
calc burst: calc-burst
calc bus: calc-bus
calc moderation: calc-moderation
calc polling: calc-polling
calc window: calc-window
check-advice: check-advice
confirm: history
diagnose: diagnose
disk: disk
firewall: firewall
firewall cost: firewall
firewall optimise: firewall-rewrite
firewall trace: firewall-trace
history: history
inspect: inspect
knobs: knob
lab list: lab-list
lab matrix: lab-matrix
lab run: lab-healthy
lab tune: lab-tune
measure: measure
measure compare: measure-compare
nfs: nfs
nfs tune: nfs-tune
peers add: peers-add
peers list: peers
peers revoke: peers-revoke
persist: persist
profile: profile
profile compare: profile-compare
report: report
resolver answer: resolver-answer
resolver diagnose: resolver-diagnose
resolver lab: resolver-lab
resolver measure: resolver
resolver tune: resolver-tune
set: set
tune: tune
undo: undo
agent: (a service: it prints to a log)
fleet trust: (sentences)
fleet distrust: (sentences)
fleet: (what linerate-hub prints)
demo: (the screens of diagnose and tune, and sentences)
export: (a file of another program)
lab up: (what the command inside prints)
plan: (a script for a shell)
recover: (sentences)
serve: (a line to paste, and a log)
top: (internal/top, whose frames at 40 to 120 columns are golden files)
version: (one word)
calc: (its help, which TestHelp holds)
help: (the help of others)
lab: (its help)
resolver: (its help)
completion bash: (a script for a shell)
completion fish: (a script for a shell)
completion powershell: (a script for a shell)
completion zsh: (a script for a shell)
`

// TestScreens holds every command to a golden file of its screens, or to the reason why it has
// none.
func TestScreens(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	root := a.rootCommand()
	listed := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(screens)) {
		name, screen, _ := strings.Cut(strings.TrimSpace(line), ": ")
		listed[name] = screen
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "linerate ")
		if c.Runnable() && c != root && !c.Hidden {
			screen, ok := listed[name]
			delete(listed, name)
			if !ok {
				t.Errorf("%s: has no screens: add a document to reporttest and a line here", name)
			} else if !strings.HasPrefix(screen, "(") {
				text, err := os.ReadFile(filepath.Join("../report/text/testdata/screens", screen+".txt"))
				for _, width := range []string{"40", "60", "80", "100", "200"} {
					if err != nil || !slices.Contains(strings.Split(string(text), "\n"), "== "+width+" columns") {
						t.Errorf("%s: %s has no screen of %s columns: %v", name, screen, width, err)
					}
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for name := range listed {
		t.Errorf("%s: there is no such command", name)
	}
}
