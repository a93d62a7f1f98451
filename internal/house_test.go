package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

const module = "github.com/linerate/linerate"

// wing is one part of the house: a directory of internal, or a module of its own.
type wing struct {
	name string
	what string // one line, for ARCHITECTURE.md
}

// wings is the house, from the ground up. A package imports its own wing and lower ones, never a
// higher one. A directory that is not in this table fails the test: choose its place, and say why
// in docs/design.
var wings = []wing{
	{"base", "units, statistics, files that survive power loss; knows nothing of networks or of linerate"},
	{"kernel", "system calls, netlink, /proc and /sys as text and bytes; the only importer of netlink libraries"},
	{"host", "the model of one host, its NICs and their ceilings, what watches and captures it, reports of it by others"},
	{"change", "knobs, journal and guard, what persists and exports a change, old advice"},
	{"wire", "the authenticated control channel between two hosts"},
	{"traffic", "our own tests, one type each, and the engine that moves the bytes"},
	{"profile", "what the CPUs do for each packet: stacks, stages of the network path, comparison, profiles of others"},
	{"resolver", "questions to name servers: loads with checked answers, a server of our own, a closed world " +
		"for real recursors"},
	{"firewall", "the model of packet filters' rules, what they cost, what a packet meets in them, shorter rules " +
		"and the proof"},
	{"dialect", "what other programs speak: iperf3, iperf, ttcp, nuttcp, sockperf, STAMP, ICMP echo"},
	{"storage", "disks and files: what reads and writes cost, and whose figure it is"},
	{"peer", "a host at the other end, the way to it, and the agent: what only root may read, and signed orders"},
	{"diagnose", "evidence to findings: rules, muted symptoms, the verdict"},
	{"experiment", "goal, design, trials, the whole loop of one tune"},
	{"report", "every document as JSON, as text and as a page"},
	{"top", "the live view"},
	{"lab", "worlds to practise in: namespaces, emulated links, guests, scenarios, the matrix"},
	{"cli", "one file per command: flags, one call, one document"},
}

// hub is the module of the hub. It stands above the report wing and knows neither the lab nor the
// command line.
const hub = "hub"

var hubMayNotImport = []string{"top", "lab", "cli"}

// estranged are wings whose rooms must not import each other, only the wing's own package may.
var estranged = []string{"internal/dialect"}

// apart holds pairs of wings of which the first must not import the second, although it stands
// above it.
var apart = [][2]string{
	{"internal/experiment", "internal/dialect"}, // package reach runs tests in every dialect
}

// strangers are rooms of one wing, or of several, that must not import each other: what they have
// in common is joined above them.
var strangers = [][]string{
	{"internal/diagnose", "internal/experiment/tune", "internal/peer"}, // the loop joins them
	{"internal/diagnose/cards", "internal/diagnose/disks", "internal/diagnose/flows",
		"internal/diagnose/processors", "internal/diagnose/resolvers", "internal/diagnose/tables"},
	{"internal/report/text", "internal/report/page"},
}

// testOnly packages may be imported by tests alone.
var testOnly = map[string]bool{
	"dev/valid":                           true,
	"internal":                            true,
	"internal/base/testenv":               true,
	"internal/change/journal/journaltest": true,
	"internal/cli/clitest":                true,
	"internal/cli/worldtest":              true,
	"internal/change/knob/knobtest":       true,
	"internal/lab/guest/guesttest":        true,
	"internal/kernel/nl/nltest":           true,
	"internal/report/reporttest":          true,
	"internal/traffic/traffictest":        true,
}

// mayExec lists who may start other programs: our own binary as a world's host or as the guard, and
// the user's ssh.
var mayExec = map[string]bool{
	"internal/lab":               true, // hosts of a practice world are our own binary in namespaces
	"internal/lab/guest":         true, // QEMU, and Debian's tools that bring a kernel
	"internal/change/journal":    true, // the guard is our own binary; busctl and systemd-run ask for its scope and timer
	"internal/change/nameserver": true, // checkers and restarts are how a server takes an option
	"internal/resolver/world":    true, // real recursors, in a network namespace of their own
	"internal/resolver/server":   true, // rndc holds the key to the control channel of named
	"internal/firewall/read":     true, // nft, iptables-save, ipset, ipfw and pfctl are the interfaces of their rules
	"internal/firewall/apply":    true, // nft loads new rules, in a namespace of their own and then where the journal says
	"internal/firewall/equal":    true, // nft loads old and new rules in namespaces of their own
	"internal/firewall/measure":  true, // nft and iptables-restore load rules in namespaces of its own
	"internal/kernel/tool":       true, // ifconfig, ipadm, PowerShell are how other systems show and set values
	"internal/wire":              true, // ssh:// targets go through the user's own ssh
	"hub/internal/alert":         true, // a program of the user's own receives alerts
	"dev/manual":                 true, // asks the programs for their help
	"dev/bench":                  true, // the other tools, and ours, as typed
}

// onlyIn holds imports that belong to few rooms, by the prefix of their paths.
var onlyIn = map[string][]string{
	"github.com/mdlayher/netlink":   {"internal/kernel/nl"},
	"github.com/mdlayher/genetlink": {"internal/kernel/nl"},
	"github.com/spf13/cobra":        {"internal/cli", "hub/internal/daemon"},
	"charm.land":                    {"internal/top"},

	// The hub alone has a database and a web server; see also TestTheProgramLinksNoServer.
	"github.com/prometheus": {"hub/internal/record", "hub/internal/alert", "hub/internal/web/api"},
	"net/http":              {"hub/internal"},
	"github.com/nats-io":    {"hub/internal/fleet/bus"},
	"github.com/gosnmp":     {"hub/internal/switches/snmp", "hub/internal/switches/switchtest"},

	// Of no room: they call methods by name, so that the linker keeps every exported method of the
	// program (1.9 MB).
	"html/template": {},
	"text/template": {},
}

var systems = []string{"linux", "freebsd", "illumos", "solaris", "windows"}

type listed struct {
	ImportPath string
	GoFiles    []string
	Dir        string
	Imports    []string
	Deps       []string
}

// list returns the packages of the module in a directory.
func list(t *testing.T, goos, dir string) []listed {
	t.Helper()
	all, err := lists(goos, dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lists asks go list once for each system and module: several tests read the answer, and each
// question costs most of a second.
func lists(goos, dir string) ([]listed, error) {
	answer, _ := answers.LoadOrStore([2]string{goos, dir}, sync.OnceValues(func() ([]listed, error) {
		return goList(goos, dir, "./...")
	}))
	return answer.(func() ([]listed, error))()
}

var answers sync.Map // a func() ([]listed, error) by [2]string: system and directory

// goList runs go list in a directory. -e: what does not build for a system is listed too.
func goList(goos, dir string, args ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,GoFiles,Dir,Imports,Deps"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w\n%s", goos, err, stderr.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// TestWings holds the direction of imports, once per operating system because build tags choose
// files.
func TestWings(t *testing.T) {
	for _, goos := range systems {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			if goos != "linux" {
				testenv.Need(t, testenv.Long)
			}
			for _, p := range append(list(t, goos, ".."), list(t, goos, "../hub")...) {
				name := strings.TrimPrefix(p.ImportPath, module+"/")
				if len(p.GoFiles) == 0 || testOnly[name] {
					continue
				}
				for _, problem := range edges(name, p.Imports) {
					t.Error(problem)
				}
			}
		})
	}
}

// place is where a package stands: the number of its wing, counted from the ground. The programs
// and what serves development stand above all wings.
func place(name string) (floor int, ok bool) {
	switch first, _, _ := strings.Cut(name, "/"); first {
	case hub, "cmd", "dev":
		return len(wings), true
	}
	rest, _ := strings.CutPrefix(name, "internal/")
	first, _, _ := strings.Cut(rest, "/")
	floor = slices.IndexFunc(wings, func(w wing) bool { return w.name == first })
	return floor, floor >= 0
}

// within reports whether a package is one of the rooms, or a room below one.
func within(name string, rooms []string) bool {
	return slices.ContainsFunc(rooms, func(room string) bool {
		return name == room || strings.HasPrefix(name, room+"/")
	})
}

// edges returns what is wrong with the imports of one package, a sentence each.
func edges(name string, imports []string) []string {
	floor, ok := place(name)
	if !ok {
		return []string{fmt.Sprintf("%s is in no wing: add its wing to the table in internal/house_test.go", name)}
	}
	var problems []string
	for _, imp := range imports {
		if imp == "os/exec" && !mayExec[name] {
			problems = append(problems, fmt.Sprintf("%s imports os/exec: only %v may start programs", name, keys(mayExec)))
		}
		for prefix, rooms := range onlyIn {
			if within(imp, []string{prefix}) && !within(name, rooms) {
				problems = append(problems, fmt.Sprintf("%s imports %s: it belongs to %v", name, imp, rooms))
			}
		}
		other, ours := strings.CutPrefix(imp, module+"/")
		if !ours {
			continue
		}
		if testOnly[other] {
			problems = append(problems, fmt.Sprintf("%s imports %s, which is for tests alone", name, other))
			continue
		}
		if above, known := place(other); known && above > floor {
			problems = append(problems, fmt.Sprintf("%s imports %s: imports go down only", name, other))
		}
		if strings.HasPrefix(name, hub+"/") && slices.ContainsFunc(hubMayNotImport,
			func(w string) bool { return within(other, []string{"internal/" + w}) }) {
			problems = append(problems, fmt.Sprintf("%s imports %s: the hub knows none of %v", name, other, hubMayNotImport))
		}
		for _, wing := range estranged {
			if strings.HasPrefix(name, wing+"/") && strings.HasPrefix(other, wing+"/") && name != other {
				problems = append(problems, fmt.Sprintf("%s imports %s: they are strangers", name, other))
			}
		}
		for _, pair := range apart {
			if within(name, pair[:1]) && within(other, pair[1:]) {
				problems = append(problems, fmt.Sprintf("%s imports %s: they are kept apart", name, other))
			}
		}
		for _, group := range strangers {
			if slices.Contains(group, name) && name != other && slices.Contains(group, other) {
				problems = append(problems, fmt.Sprintf("%s imports %s: they are strangers", name, other))
			}
		}
	}
	return problems
}

var update = flag.Bool("update", false, "write the generated table into ARCHITECTURE.md")

// TestGeneratedMap holds ARCHITECTURE.md to the table of wings.
func TestGeneratedMap(t *testing.T) {
	const path, from, to = "../ARCHITECTURE.md", "<!-- wings -->\n", "<!-- /wings -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), from)
	_, after, ended := strings.Cut(rest, to)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table: want the lines %q and %q", path, from, to)
	}
	want := before + from + wingTable(t) + to + after
	if *update {
		err = os.WriteFile(path, []byte(want), 0o644)
	} else if want != string(page) {
		t.Errorf("%s does not show the wings as they are; run make gen", path)
	}
	if err != nil {
		t.Error(err)
	}
}

// wingTable draws the wings from the top down, each with its rooms.
func wingTable(t *testing.T) string {
	t.Helper()
	rooms := make(map[string][]string)
	for _, p := range list(t, "linux", "..") {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		rest, ok := strings.CutPrefix(name, "internal/")
		if wing, room, below := strings.Cut(rest, "/"); ok && below && len(p.GoFiles) > 0 && !testOnly[name] {
			rooms[wing] = append(rooms[wing], "`"+room+"`")
		}
	}
	table := "| wing | what it is | its rooms |\n|---|---|---|\n" +
		"| `cmd/linerate` · `dev/bench` | one call into cli, one os.Exit · the comparison with other tools | |\n"
	for _, w := range slices.Backward(wings) {
		table += fmt.Sprintf("| `%s` | %s | %s |\n", w.name, w.what, strings.Join(rooms[w.name], " "))
	}
	return table
}

// TestWingsCanFail shows that each rule bites.
func TestWingsCanFail(t *testing.T) {
	for _, c := range []struct{ name, imp, want string }{
		{"internal/base/stats", module + "/internal/cli", "imports go down only"},
		{"internal/host/watch", module + "/internal/traffic/engine", "imports go down only"},
		{"internal/experiment/tune", module + "/internal/diagnose", "strangers"},
		{"internal/dialect/iperf3", module + "/internal/dialect/iperf2", "strangers"},
		{"internal/experiment/loop", module + "/internal/dialect/icmp", "kept apart"},
		{"internal/change/knob/live", "os/exec", "may start programs"},
		{"internal/host", "github.com/mdlayher/netlink", "belongs to"},
		{"internal/host", "github.com/mdlayher/netlink/nlenc", "belongs to"},
		{"internal/report/page", "html/template", "belongs to"},
		{"internal/change/journal", module + "/internal/change/knob/knobtest", "for tests alone"},
		{"internal/base/runs", module + "/hub/internal/record", "imports go down only"},
		{"hub/internal/record", module + "/internal/lab", "the hub knows none"},
		{"internal/nowhere", "fmt", "is in no wing"},
	} {
		if got := edges(c.name, []string{c.imp}); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("edge %s → %s: got %q, want one problem with %q", c.name, c.imp, got, c.want)
		}
	}
}

// TestWingsAreFew keeps the first look at internal small, and every wing in use.
func TestWingsAreFew(t *testing.T) {
	const most = 18 // fourteen, and the four that docs/design/0011 announces
	if len(wings) > most {
		t.Errorf("%d wings, want at most %d", len(wings), most)
	}
	for _, w := range wings {
		if info, err := os.Stat(w.name); err != nil || !info.IsDir() {
			t.Errorf("wing %s: %v", w.name, err)
		}
	}
}

// TestTheProgramLinksNoServer holds what the privileged program may not carry, by what it links and
// not by what it imports itself: a dependency of a dependency counts. The hub is the counterpart,
// so that the test cannot pass for want of names.
func TestTheProgramLinksNoServer(t *testing.T) {
	links := func(dir, program string) map[string]bool {
		all := make(map[string]bool)
		for _, p := range list(t, "linux", dir) {
			if strings.HasSuffix(p.ImportPath, "/cmd/"+program) {
				for _, dep := range p.Deps {
					all[dep] = true
				}
			}
		}
		return all
	}
	near, hub := links("..", "linerate"), links("../hub", "linerate-hub")
	for _, name := range []string{"net/http", "github.com/prometheus/prometheus/tsdb"} {
		if near[name] {
			t.Errorf("cmd/linerate links %s", name)
		}
		if !hub[name] {
			t.Errorf("hub/cmd/linerate-hub does not link %s: is it renamed?", name)
		}
	}
}

// TestScriptsStartFast: the scripts of package cli start its test binary over a thousand times, and
// the validator of JSON Schema spends 9 ms on its own schemas in each process that links it.
func TestScriptsStartFast(t *testing.T) {
	const validator = "/santhosh-tekuri/jsonschema/"
	binaries, err := goList("linux", ".", "-test", "./cli", "./cli/worldtest")
	if err != nil {
		t.Fatal(err)
	}
	for dir, links := range map[string]bool{"cli": false, "cli/worldtest": true} {
		i := slices.IndexFunc(binaries, func(p listed) bool { return p.ImportPath == module+"/internal/"+dir+".test" })
		if i < 0 {
			t.Fatalf("go list names no test binary of %s", dir)
		}
		linked := slices.ContainsFunc(binaries[i].Deps, func(dep string) bool { return strings.Contains(dep, validator) })
		if linked != links {
			t.Errorf("the tests of %s link %s: %t, want %t", dir, validator, linked, links)
		}
	}
}

// TestPackageDocs asks every package for exactly one package comment, in doc.go (commands:
// main.go).
func TestPackageDocs(t *testing.T) {
	for _, p := range append(list(t, "linux", ".."), list(t, "linux", "../hub")...) {
		if len(p.GoFiles) == 0 {
			continue
		}
		var with []string
		for _, f := range p.GoFiles {
			b, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if hasPackageComment(b) {
				with = append(with, f)
			}
		}
		if len(with) != 1 || (with[0] != "doc.go" && with[0] != "main.go") {
			t.Errorf("%s: package comment in %v, want it once, in doc.go", p.ImportPath, with)
		}
	}
}

func hasPackageComment(src []byte) bool {
	previous := ""
	for line := range strings.Lines(string(src)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "package ") {
			return (strings.HasPrefix(previous, "//") && !strings.HasPrefix(previous, "//go:")) ||
				strings.HasSuffix(previous, "*/")
		}
		previous = line
	}
	return false
}

// sorters are compiled again for each type of element, which made a megabyte of the program;
// base/sorting has the same functions once.
var sorters = []string{"slices.SortFunc(", "slices.SortStableFunc(", "slices.SortedFunc(", "slices.SortedStableFunc("}

// TestOneSorter keeps the program to one copy of the sorting of records.
func TestOneSorter(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Dir(path) == filepath.FromSlash("base/sorting") {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		for _, sorter := range sorters {
			if bytes.Contains(b, []byte(sorter)) {
				t.Errorf("%s calls %s…): package base/sorting has the same function, once for the program", path, sorter)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if files < 500 {
		t.Errorf("%d files were read, want the whole of internal", files)
	}
}

// TestFileSizes keeps every file readable in one sitting.
func TestFileSizes(t *testing.T) {
	const limit = 600
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := bytes.Count(b, []byte("\n")); n > limit {
			rel, _ := filepath.Rel(root, path)
			t.Errorf("%s has %d lines, over %d: split it by idea", rel, n, limit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func keys(m map[string]bool) []string {
	var k []string
	for name := range m {
		k = append(k, name)
	}
	slices.Sort(k)
	return k
}
