package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/linerate/linerate"

// floors is the house: a package may import only packages of a lower floor, so neighbours are
// strangers. A package that is not in this table fails the test: choose its floor, and say why in
// docs/design.
var floors = map[string]int{
	"internal/base/unit":      0,
	"internal/base/stats":     0,
	"internal/base/durable":   0,
	"internal/kernel/sys":     0,
	"hub/internal/credential": 0, // secrets and authorities, in files of their own
	"internal/base/progress":  0, // what is told of a command while it works
	"internal/kernel/nl":      0, // the sockets of netlink, which the rooms above it speak through

	"internal/kernel/nl/ethtool":  1, // what ethtool(8) shows of a card
	"internal/kernel/nl/route":    1, // routes, and what the kernel keeps of the hosts they lead to
	"internal/kernel/nl/tc":       1, // the options of queueing disciplines: bytes and words, no socket
	"internal/kernel/nl/sockdiag": 1, // the sockets of a namespace, one after the other
	"internal/kernel/nl/nft":      1, // how many firewall rules there are to compare a packet with
	"internal/wire":               1,
	"internal/kernel/procfs":      1,
	"internal/host/bus":           1,
	"internal/host/nicstat":       1, // what the counters of cards mean
	"internal/change/atboot":      1, // what runs recovery at every start
	"internal/host/owner":         1, // who else manages a host, by the marks they leave
	"internal/host/hypervisor":    1, // what a host runs on, by the marks that guests see
	"internal/experiment/goal":    1, // what a tune is asked for: a small grammar

	"internal/base/runs":     1, // the results of experiments, a file each
	"internal/kernel/hostfs": 1, // the files of a host: the running system, a directory, memory

	"internal/host/moderation": 1, // what interrupts cost and carry: arithmetic alone

	"hub/internal/timeline": 1, // what happened to hosts and when
	"hub/internal/web":      1, // who may ask a web server of ours, and how much; knows nothing of what is told
	"hub/internal/web/page": 1, // the page of the hub: files that a browser gets

	"internal/traffic/engine":    1, // threads and sockets; knows of no test
	"internal/traffic/admission": 1, // who may ask how much of a server

	"internal/change/knob":      2, // names, definitions and values of tunables
	"internal/change/knob/live": 3, // the tunables of the running system
	"internal/host":             2,
	"internal/traffic/echo":     2, // single packets
	"internal/traffic/datagram": 2, // UDP in bulk
	"internal/traffic/service":  2, // the frame that servers for strangers stand in
	"internal/traffic/channel":  2, // the messages of one test, and an end to every wait
	"internal/traffic/plan":     2, // what a test can be asked for
	// what one host saw of a test's packets: the kernel's word on connections, places of loss
	"internal/traffic/account": 2,

	"internal/host/sosreport/printed": 3, // what tools print for people, as values of package host

	"internal/host/capture": 3, // one host in a file that can be sent to a stranger
	"internal/host/ceiling": 3, // the rates that a host cannot pass: arithmetic on a snapshot
	"internal/traffic":      3,
	"internal/host/watch":   3, // one host over a time, without a test: counters, processors, interrupts, sockets
	"internal/host/sample":  3, // one host second by second, as series

	"internal/host/sosreport": 4, // one host in the report that support people ask for
	"internal/host/snapshot":  5, // a host out of whatever somebody sent: capture, sosreport, copy of files

	"internal/change/journal":        4,
	"internal/change/journal/cgroup": 3, // a control group of a process's own
	"internal/change/bootconf":       4, // what the files of a host set when it starts
	"internal/change/advice":         4, // what has become of old settings
	"internal/change/export":         4, // a proven set of changes, written for other hosts
	"hub/internal/record":            4, // series on disk, and bounded queries of them

	// Foreign dialects: they give results of package traffic and know nothing of one another.
	"internal/dialect/iperf3":   4,
	"internal/dialect/iperf2":   4,
	"internal/dialect/ttcp":     4,
	"internal/dialect/nuttcp":   4,
	"internal/dialect/sockperf": 4,
	"internal/dialect/stamp":    4,
	"internal/dialect/icmp":     4, // of a host that runs nothing of ours

	"internal/dialect": 5, // all of them, by name and port

	"internal/peer/agent":        5, // what only root may read of a host, for those who are given its socket
	"hub/internal/alert":         5, // rules over time, and who is told
	"hub/internal/compare":       5, // two intervals of a history against each other
	"hub/internal/record/remote": 5, // the same series for a store that somebody has already

	"internal/change/persist": 5, // which files make a change survive a reboot

	"internal/experiment/tune": 5,
	"internal/peer":            5,

	"internal/diagnose/evidence":   4, // the case as rules see it, and the form of what they say
	"internal/diagnose/flows":      5, // rules, by where a fault sits; they know nothing of one another
	"internal/diagnose/cards":      5,
	"internal/diagnose/processors": 5,
	"internal/diagnose/tables":     5,
	"internal/diagnose/casefile":   5, // a whole case in one scrubbed file
	"internal/peer/reach":          6, // the way to a target, whatever runs there
	"internal/diagnose":            6, // all of them, and the verdicts that are about the others

	"internal/experiment/loop": 7,
	"internal/report":          7,

	"internal/report/words": 8, // phrases that text and page have in common
	"internal/report/text":  9, // every document on a terminal
	"internal/report/page":  9, // a tune as one page

	"internal/lab/link":     3, // the emulated link itself: frames, not hosts
	"internal/lab/work":     3, // what other programs do in a world
	"internal/lab/guest":    3, // a Linux of its own with real drivers; knows nothing of what runs in it
	"internal/lab/scenario": 4, // worlds, faults and what must come of them, as data
	"internal/lab/setting":  4, // settings of one host of a world, from within it
	"internal/lab/ground":   4, // guests in which practice worlds are played
	"internal/lab":          8,
	"internal/lab/matrix":   9, // whether verdicts on worlds are right, and whether tuning repairs them

	"internal/lab/story": 9, // the run of a world, told to somebody who watches

	"hub/internal/timeline/follow": 8, // a host's changes, runs, links and findings, as events

	"hub/internal/schedule": 8, // measurements at intervals
	"internal/top":          8, // the live view
	"hub/internal/web/api":  9, // what the hub tells: Prometheus's API and our own

	"internal/cli":        10,
	"hub/internal/daemon": 10, // the daemon that joins sampler, history, page, schedules and alerts

	"cmd/linerate":         11,
	"hub/cmd/linerate-hub": 11,
	"bench":                11, // drives the program from outside
}

// testOnly packages may be imported by tests alone; they stand above everything they test.
var testOnly = map[string]bool{
	"internal":                      true,
	"internal/cli/clitest":          true,
	"internal/change/knob/knobtest": true,
	"internal/lab/guest/guesttest":  true,
	"internal/kernel/nl/nltest":     true,
	"internal/report/reporttest":    true,
	"internal/traffic/traffictest":  true,
}

// mayExec lists who may start other programs: our own binary as a world's host or as the guard, and
// the user's ssh.
var mayExec = map[string]bool{
	"internal/lab":                   true, // hosts of a practice world are our own binary in namespaces
	"internal/lab/guest":             true, // QEMU, and Debian's tools that bring a kernel
	"internal/change/journal":        true, // the guard is our own binary outside the writer
	"internal/change/journal/cgroup": true, // systemd is asked for a scope by its busctl
	"internal/wire":                  true, // ssh:// targets go through the user's own ssh
	"hub/internal/alert":             true, // a program of the user's own is told of alerts
	"bench":                          true, // the other tools, and ours, as typed
}

// onlyIn holds imports that belong to one room.
var onlyIn = map[string][]string{
	"github.com/mdlayher/netlink": {"internal/kernel/nl", "internal/kernel/nl/ethtool", "internal/kernel/nl/route",
		"internal/kernel/nl/tc", "internal/kernel/nl/nft"},
	"github.com/mdlayher/genetlink": {"internal/kernel/nl", "internal/kernel/nl/ethtool", "internal/kernel/nl/route"},
	"github.com/spf13/cobra":        {"internal/cli", "hub/internal/daemon"},
	"charm.land":                    {"internal/top"},

	// The hub alone has a database and a web server; see also TestTheProgramLinksNoServer.
	"github.com/prometheus": {"hub/internal/record", "hub/internal/record/remote", "hub/internal/web/api"},
	"net/http": {"hub/internal/web", "hub/internal/web/api", "hub/internal/web/page", "hub/internal/alert",
		"hub/internal/record/remote", "hub/internal/daemon"},

	// Of no room: they call methods by name, so that the linker keeps every exported method of the
	// program (1.9 MB).
	"html/template": {},
	"text/template": {},
}

var systems = []string{"linux", "freebsd", "illumos", "solaris", "windows"}

type listed struct {
	ImportPath string
	Doc        string
	GoFiles    []string
	Dir        string
	Imports    []string
}

func list(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Doc,GoFiles,Dir,Imports", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, stderr.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestFloors holds the direction of imports, once per operating system because build tags choose
// files.
func TestFloors(t *testing.T) {
	for _, goos := range systems {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			for _, p := range list(t, goos) {
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

func edges(name string, imports []string) []string {
	floor, ok := floors[name]
	if !ok {
		return []string{fmt.Sprintf("%s has no floor: add it to the table in internal/floors_test.go", name)}
	}
	var problems []string
	for _, imp := range imports {
		if imp == "os/exec" && !mayExec[name] {
			problems = append(problems, fmt.Sprintf("%s imports os/exec: only %v may start programs", name,
				keys(mayExec)))
		}
		for prefix, rooms := range onlyIn {
			if (imp == prefix || strings.HasPrefix(imp, prefix+"/")) && !slices.Contains(rooms, name) {
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
		if below, known := floors[other]; known && below >= floor {
			problems = append(problems, fmt.Sprintf("%s (floor %d) imports %s (floor %d): imports go down only", name,
				floor, other, below))
		}
	}
	return problems
}

// TestFloorsCanFail shows that the rule bites: an upward edge, a stranger on the same floor and an
// unknown package are all named.
func TestFloorsCanFail(t *testing.T) {
	for _, c := range []struct{ name, imp, want string }{
		{"internal/base/stats", module + "/internal/cli", "imports go down only"},
		{"internal/experiment/tune", module + "/internal/diagnose", "imports go down only"},
		{"internal/change/knob/live", "os/exec", "may start programs"},
		{"internal/host", "github.com/mdlayher/netlink", "belongs to"},
		{"internal/report/page", "html/template", "belongs to"},
		{"internal/change/journal", module + "/internal/knob/knobtest", "for tests alone"},
		{"internal/nowhere", "fmt", "has no floor"},
	} {
		if got := edges(c.name, []string{c.imp}); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("edge %s → %s: got %q, want one problem with %q", c.name, c.imp, got, c.want)
		}
	}
}

// TestTheProgramLinksNoServer holds what the privileged program may not carry, by what it links and
// not by what it imports itself: a dependency of a dependency counts. The hub is the counterpart,
// so that the test cannot pass for want of names.
func TestTheProgramLinksNoServer(t *testing.T) {
	links := func(program string) map[string]bool {
		out, err := exec.Command("go", "list", "-deps", module+"/cmd/"+program).Output()
		if err != nil {
			t.Fatalf("go list of %s: %v", program, err)
		}
		all := make(map[string]bool)
		for line := range strings.Lines(string(out)) {
			all[strings.TrimSpace(line)] = true
		}
		return all
	}
	near, hub := links("linerate"), links("linerate-hub")
	for _, name := range []string{"net/http", "github.com/prometheus/prometheus/tsdb"} {
		if near[name] {
			t.Errorf("cmd/linerate links %s", name)
		}
		if !hub[name] {
			t.Errorf("hub/cmd/linerate-hub does not link %s: is it renamed?", name)
		}
	}
}

// TestPackageDocs asks every package for exactly one package comment, in doc.go (commands:
// main.go).
func TestPackageDocs(t *testing.T) {
	for _, p := range list(t, "linux") {
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

// roomy are packages that are wide by nature: one file for each command, and for each system call
// and system.
var roomy = map[string]bool{"internal/cli": true, "internal/kernel/sys": true}

// outgrown are packages over their limit, with the size that they may not pass until they are
// split. A package is taken off the list when it has come down; none is put on it.
var outgrown = map[string]int{"internal/cli": 5120}

// TestPackageSizes keeps every package one idea: past the limit, counted without tests and over all
// systems, it is parted into rooms.
func TestPackageSizes(t *testing.T) {
	lines := make(map[string]int)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		lines[filepath.ToSlash(rel)] += bytes.Count(b, []byte("\n"))
	}
	if len(lines) < len(floors) {
		t.Fatalf("%d packages found, %d have a floor", len(lines), len(floors))
	}
	for name, n := range lines {
		if problem := oversize(name, n, outgrown); problem != "" {
			t.Error(problem)
		}
	}
}

// oversize says what is wrong with the size of a package, in lines, of which some are known to be
// outgrown; empty: nothing.
func oversize(name string, lines int, outgrown map[string]int) string {
	limit := 3000
	if roomy[name] {
		limit = 5000
	}
	ceiling, listed := outgrown[name]
	switch {
	case listed && lines <= limit:
		return fmt.Sprintf("%s has %d lines and is within %d again: take it off the list of outgrown packages", name,
			lines, limit)
	case listed && lines > ceiling:
		return fmt.Sprintf("%s has %d lines, and was to come down from %d: split it", name, lines, ceiling)
	case !listed && lines > limit:
		return fmt.Sprintf("%s has %d lines, over %d: give an idea of its own a room of its own", name, lines, limit)
	}
	return ""
}

// TestPackageSizesCanFail shows that each of the bounds bites, and that the last line within it is
// allowed.
func TestPackageSizesCanFail(t *testing.T) {
	known := map[string]int{"internal/lab": 3500}
	for _, c := range []struct {
		name  string
		lines int
		want  string
	}{
		{"internal/experiment/tune", 3000, ""},
		{"internal/experiment/tune", 3001, "over 3000"},
		{"internal/kernel/sys", 5000, ""},
		{"internal/kernel/sys", 5001, "over 5000"},
		{"internal/lab", 3500, ""},
		{"internal/lab", 3501, "was to come down"},
		{"internal/lab", 3000, "take it off the list"},
	} {
		if got := oversize(c.name, c.lines, known); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %d lines: %q, want %q", c.name, c.lines, got, c.want)
		}
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
