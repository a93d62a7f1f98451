package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const project = "https://github.com/linerate/linerate"

// release is one release while it is made.
type release struct {
	tree, out, work string
	targets         []string
	programs        []program // those of this release

	number   string    // of the source, such as 0.1.0
	snapshot string    // time of a commit without a tag, such as 20261126041811
	revision string    // abbreviated, as in the version that the programs print
	date     time.Time // of the commit
}

// program is one program, with the directory of its module and a line for packages.
type program struct{ name, module, about string }

// programs are both of them.
var programs = []program{
	{"linerate", ".", "Find what keeps a host from its line rate, prove the remedy, undo anything"},
	{"linerate-hub", "hub", "Keep the history of a host and show it on a page"},
}

// run runs a program in the tree and returns what it prints.
func (r *release) run(env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = r.tree
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

var numberLine = regexp.MustCompile(`(?m)^const Number = "(\d+\.\d+\.\d+)"$`)

// identify reads which version and commit the tree is. Changes that no commit has would make a
// release that no one can make again.
func (r *release) identify() error {
	source, err := os.ReadFile(filepath.Join(r.tree, "internal/base/release/release.go"))
	if err != nil {
		return err
	}
	m := numberLine.FindSubmatch(source)
	if m == nil {
		return fmt.Errorf("version of %s: internal/base/release/release.go has no line const Number", r.tree)
	}
	r.number = string(m[1])
	changed, err := r.run(nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("release %s: commit these changes first:\n%s", r.tree, changed)
	}
	if r.revision, err = r.run(nil, "git", "rev-parse", "--short=8", "HEAD"); err != nil {
		return err
	}
	stamp, err := r.run(nil, "git", "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	if r.date, err = time.Parse(time.RFC3339, stamp); err != nil {
		return err
	}
	r.date = r.date.UTC()
	tags, err := r.run(nil, "git", "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(tags), "v"+r.number) {
		r.snapshot = r.date.Format("20060102150405")
	}
	return nil
}

// version returns the version in the names of files and, for a format with rules of its own, in a
// package: each sorts a snapshot behind the version that it follows.
func (r *release) version(format string) string {
	if r.snapshot == "" {
		return r.number
	}
	joint := map[string]string{"rpm": "^git", "apk": "_git"}[format]
	if joint == "" {
		joint = "+git"
	}
	return r.number + joint + r.snapshot
}

// bin returns the path of a built program.
func (r *release) bin(target, program string) string {
	if strings.HasPrefix(target, "windows/") {
		program += ".exe"
	}
	return filepath.Join(r.work, "bin", strings.ReplaceAll(target, "/", "_"), program)
}

// here is the system that the release is made on; its programs print the manual.
const here = "linux/" + runtime.GOARCH

// build builds both programs for each target, with the flags of the Makefile.
func (r *release) build() error {
	flags := []string{"-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X github.com/linerate/linerate/internal/base/release.revision=" + r.revision}
	for _, room := range []string{"change/advice", "cli", "report", "resolver/server"} { // ONCE in the Makefile
		flags = append(flags, "-gcflags=github.com/linerate/linerate/internal/"+room+"/...=-l")
	}
	targets := r.targets
	if !slices.Contains(targets, here) {
		targets = append(slices.Clone(targets), here)
	}
	for _, target := range targets {
		system, arch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("target %q: write GOOS/GOARCH", target)
		}
		env := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=" + system, "GOARCH=" + arch}
		for _, p := range r.programs {
			args := slices.Concat([]string{"-C", p.module, "build"}, flags,
				[]string{"-o", r.bin(target, p.name), "./cmd/" + p.name})
			if _, err := r.run(env, "go", args...); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "release: built for %s\n", target)
	}
	return nil
}

// manual writes manual pages and completions.
func (r *release) manual() error {
	args := []string{"run", "./dev/manual", "-o", r.work, "-date", r.date.Format(time.DateOnly)}
	for _, p := range r.programs {
		args = append(args, r.bin(here, p.name))
	}
	c := exec.Command("go", args...)
	c.Dir = "../.." // this repository; the tree may be of a version without dev/manual
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	c.Stderr = os.Stderr
	return c.Run()
}

// item is a file of a package or an archive.
type item struct {
	path string // in the file system of a host, absolute
	data []byte
	mode fs.FileMode
}

// places are where the directories of dist go. A directory without a place is an error: a package
// would lack what it is for.
var places = map[string]string{
	"systemd":    "/usr/lib/systemd/system",
	"sysusers.d": "/usr/lib/sysusers.d",
	"tmpfiles.d": "/usr/lib/tmpfiles.d",
	"grafana":    "/usr/share/linerate-hub/grafana",
	"prometheus": "/usr/share/linerate-hub/prometheus",
}

// completionPlaces are where shells look for completions.
var completionPlaces = map[string]string{
	"bash":       "/usr/share/bash-completion/completions",
	"zsh":        "/usr/share/zsh/site-functions",
	"fish":       "/usr/share/fish/vendor_completions.d",
	"powershell": "/usr/share/linerate",
}

// belongs reports whether a file belongs to a program: those of the hub have its name, or are in
// its directories.
func belongs(program, path string) bool {
	ofHub := strings.Contains(path, "linerate-hub")
	return ofHub == (program == "linerate-hub")
}

// shared returns the files of a program that are the same for every Linux: manual, completions,
// units, licence. A unit names the program where the package puts it.
func (r *release) shared(program string) ([]item, error) {
	var all []item
	add := func(source, path string) error {
		data, err := os.ReadFile(source)
		if err == nil && belongs(program, path) {
			data = []byte(strings.ReplaceAll(string(data), "/usr/local/bin/", "/usr/bin/"))
			all = append(all, item{path, data, 0o644})
		}
		return err
	}
	sources := map[string]string{filepath.Join(r.work, "man"): "man"}
	for shell, place := range completionPlaces {
		sources[filepath.Join(r.work, "completions", shell)] = place
	}
	dist := filepath.Join(r.tree, "dist")
	directories, err := os.ReadDir(dist)
	if err != nil {
		return nil, err
	}
	for _, d := range directories {
		place, ok := places[d.Name()]
		if !ok {
			return nil, fmt.Errorf("dist/%s: has no place in a package; name one in dev/release/tree.go", d.Name())
		}
		sources[filepath.Join(dist, d.Name())] = place
	}
	for source, place := range sources {
		entries, err := os.ReadDir(source)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			at := place
			if at == "man" {
				at = "/usr/share/man/man" + e.Name()[len(e.Name())-1:]
			}
			if strings.Contains(e.Name(), ".test.") {
				continue // a test of rules
			}
			if err := add(filepath.Join(source, e.Name()), filepath.Join(at, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	if program == "linerate-hub" && !slices.ContainsFunc(all, func(i item) bool {
		return strings.HasSuffix(i.path, "/linerate-hub.service")
	}) {
		self := r.bin(here, program)
		unit, err := r.run(nil, self, "unit")
		if err != nil {
			return nil, err
		}
		unit = strings.ReplaceAll(unit, self, "/usr/bin/linerate-hub") + "\n"
		all = append(all, item{places["systemd"] + "/linerate-hub.service", []byte(unit), 0o644})
	}
	for source, name := range map[string]string{"LICENSE": "copyright", "CHANGELOG.md": "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.tree, source))
		if err != nil {
			return nil, err
		}
		all = append(all, item{"/usr/share/doc/" + program + "/" + name, data, 0o644})
	}
	slices.SortFunc(all, func(a, b item) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// binary returns a program as a file of a package.
func (r *release) binary(target, name string) (item, error) {
	data, err := os.ReadFile(r.bin(target, name))
	return item{"/usr/bin/" + filepath.Base(r.bin(target, name)), data, 0o755}, err
}
