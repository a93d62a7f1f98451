package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/export"
	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/cli/clitest"
	"github.com/linerate/linerate/internal/dialect"
)

// completed returns what a shell gets for a command line whose last word is being typed: the words
// without their descriptions, and the directive.
func completed(t *testing.T, line ...string) (words []string, directive string) {
	t.Helper()
	var out, errs bytes.Buffer
	args := append([]string{"linerate", "__complete"}, line...)
	if status := Main(args, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("%q: status %d, %s", line, status, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, l := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(l, "\t")
		words = append(words, word)
	}
	return words, lines[len(lines)-1]
}

// Directives of cobra, as a shell reads them: no blank follows (2), no files (4), this order (32).
const (
	files    = ":0"
	nothing  = ":4"
	ordered  = ":36"
	unspaced = ":38"
)

// TestCompletion asks for the values that a user would have to look up.
func TestCompletion(t *testing.T) {
	state := t.TempDir()
	t.Setenv("LINERATE_STATE", state)
	id := runs.NewID(time.Date(2026, 11, 22, 13, 4, 5, 0, time.UTC), 0x7f3a)
	if err := runs.In(durable.OS(), state, runs.Tunes, 0).Save(id, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	measured := runs.NewID(time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC), 0x0001)
	if err := runs.In(durable.OS(), state, runs.Measurements, 0).Save(measured, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	roster := filepath.Join(t.TempDir(), "peers.json")
	for _, args := range [][]string{{"hub"}, {"lab", "--allow-tuning"}, {"other", "--file", roster}} {
		var errs bytes.Buffer
		if status := Main(append([]string{"linerate", "peers", "add"}, args...), strings.NewReader(""), io.Discard,
			&errs); status != 0 {
			t.Fatalf("peers add %v: status %d, %s", args, status, &errs)
		}
	}
	links, err := net.Interfaces()
	if err != nil || len(links) == 0 {
		t.Fatalf("interfaces %v, %v: every host has a loopback", links, err)
	}
	link := links[0].Name
	for _, tc := range []struct {
		line            string // the last word is what was typed; a blank at the end: nothing
		some, directive string
	}{
		{"measure --test ", "stream rr crr udp ping mtu load burst", ordered},
		{"measure --test c", "crr", ordered},
		{"measure ip", "iperf3:// iperf2://", unspaced},
		{"measure far ", "", nothing},
		{"disk --test sequential-read,random-w", "sequential-read,random-write", ordered},
		{"disk --way d", "direct dropped", ordered},
		{"profile --test u", "udp", ordered},
		{"export --format t", "tuned", ordered},
		{"tune --goal l", "latency", ordered},
		{"set --allow d2", "d2", ordered},
		{"diagnose --explain rx-", "rx-ring-overrun", ordered},
		{"diagnose --fail-on w", "warning", ordered},
		{"lab run receive-w", "receive-window", ordered},
		{"lab up p", "pair", ordered},
		{"calc bus pc", "pci pci-x pcie", ordered},
		{"report 2026", id, ordered},
		{"report l", "last", ordered},
		{"report 2026112", measured, ordered},
		{"measure compare ", "last " + measured, ordered},
		{"measure --baseline l", "last", ordered},
		{"peers revoke ", "hub lab", ordered},
		{"peers revoke --file " + roster + " o", "other", ordered},
		{"inspect " + link, link, ordered},
		{"measure --bind 127.", "127.0.0.1", ordered},
		{"history --knob sysctl:net.core.rmem_m", "sysctl:net.core.rmem_max", ordered},
		{"history --format p", "prometheus", ordered},
		{"plan --os f", "freebsd", ordered},
		{"tune --role l", "latency", ordered},
		{"undo --run ", "last " + id, ordered},
		{"report ./fi", "", files},
		{"check-advice old", "", files},
		{"set ", "sysctl: ethtool: link: qdisc:", unspaced},
		{"set net.core.rmem_m", "net.core.rmem_max=", unspaced},
		{"knobs sysctl:net.core.rmem_m", "sysctl:net.core.rmem_max", ordered},
		{"set sysctl:net.core.rmem_m", "sysctl:net.core.rmem_max=", unspaced},
		{"set link:", "link:" + link + "/", unspaced},
		{"set link:" + link + "/m", "link:" + link + "/mtu=", unspaced},
		{"tune --knobs link:" + link + "/m", "link:" + link + "/mtu", ordered},
		{"tune --knobs link:x/mtu,sysctl:net.core.rmem_m", "link:x/mtu,sysctl:net.core.rmem_max", ordered},
		{"top --interface " + link, link, ordered},
		{"help chan", "changes", nothing},
		{"help conf", "confirm", nothing},
		{"help lab r", "run", nothing},
		{"version ", "", nothing},
	} {
		words, directive := completed(t, strings.Split(tc.line, " ")...)
		for _, want := range strings.Fields(tc.some) {
			if !slices.Contains(words, want) {
				t.Errorf("%q: %q is missing in %q", tc.line, want, words)
			}
		}
		if tc.some == "" && len(words) > 0 || directive != tc.directive {
			t.Errorf("%q: %q with %s, want %q with %s", tc.line, words, directive, tc.some, tc.directive)
		}
		typed := tc.line[strings.LastIndexByte(tc.line, ' ')+1:]
		for _, word := range words {
			if !strings.HasPrefix(word, typed) {
				t.Errorf("%q: %q does not begin with %q", tc.line, word, typed)
			}
		}
	}
	if words, _ := completed(t, "lab", "run", "all", ""); len(words) != 0 {
		t.Errorf("a second scenario is offered: %q", words)
	}
}

// TestCompletionsAreInTheHelp holds the text of known words to the tree of commands: each place
// exists, and the help of its command has each word, so that neither a renamed flag nor a dropped
// value stays behind.
func TestCompletionsAreInTheHelp(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	root := a.rootCommand()
	var all []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for line := range strings.Lines(strings.TrimSpace(knownWords)) {
		place, known, _ := strings.Cut(strings.TrimSpace(line), ": ")
		path, flag, _ := strings.Cut(place, "--")
		path = strings.TrimSpace(path)
		found := false
		for _, c := range all {
			if path != "" && c.CommandPath() != "linerate "+path || flag != "" && c.Flag(flag) == nil {
				continue
			}
			found = true
			text := c.Short + c.Long + c.Use
			if flag != "" {
				text += c.Flag(flag).Usage
			}
			for _, word := range strings.Fields(known) {
				name := strings.TrimSuffix(strings.TrimSuffix(word, "//"), ":")
				// The help of --allow abbreviates the row of classes, and that of diagnose names other
				// programs' targets only on the page of dialects.
				if flag != "allow" && !slices.Contains(dialect.Names(), name) && name != "icmp" && name != "ssh" &&
					!strings.Contains(text, name) {
					t.Errorf("%s: the help of %q lacks %q", place, c.CommandPath(), word)
				}
			}
		}
		if !found {
			t.Errorf("%s: there is no such place", place)
		}
	}
	for place, want := range map[string][]string{
		"serve --accept":  dialect.Names(),
		"export --format": strings.Split(words(export.Formats()), ", "),
		"plan --role":     strings.Split(words(plan.Roles()), ", "),
	} {
		if got := a.wordsFor(place, ""); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
}

// TestGeneratedTopics compares docs/reference/topics.md with the topics; `make gen` writes it.
func TestGeneratedTopics(t *testing.T) {
	var page bytes.Buffer
	page.WriteString("# Topics\n\nGenerated from the text of `linerate help TOPIC`; do not edit.\n")
	for _, topic := range topics() {
		page.WriteString("\n## " + topic.name + "\n\n" + topic.title + "\n\n```text\n" + topic.text + "\n```\n")
	}
	clitest.Generated(t, "../../docs/reference/topics.md", page.Bytes(), *update)
}

// TestTopics prints each topic, and each variable that the program reads has its line in one.
func TestTopics(t *testing.T) {
	for _, topic := range topics() {
		var out, errs bytes.Buffer
		if status := Main([]string{"linerate", "help", topic.name}, os.Stdin, &out, &errs); status != 0 ||
			!strings.HasPrefix(out.String(), topic.title+"\n\n") || strings.Contains(out.String(), "\n# ") {
			t.Errorf("help %s: status %d, %q, %q", topic.name, status, out.String(), errs.String())
		}
		for line := range strings.Lines(topic.text) {
			if len([]rune(line)) > 101 {
				t.Errorf("%s: a line of %d columns: %s", topic.name, len([]rune(line)), line)
			}
		}
	}
	for status, meaning := range exitMeanings {
		word, _, _ := strings.Cut(meaning, " ") // the topic says more of most
		if line := fmt.Sprintf("\n  %-4d %s", status, word); status != exitFinding && !strings.Contains(topicsText, line) {
			t.Errorf("the topic exit-status lacks %q", line)
		}
	}
	for _, variable := range []string{"LINERATE_KEY", "LINERATE_STATE", "XDG_STATE_HOME", "NO_COLOR", "TERM"} {
		if !strings.Contains(topicsText, "\n  "+variable+" ") {
			t.Errorf("no topic names %s", variable)
		}
	}
}
