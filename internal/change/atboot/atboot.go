package atboot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/base/durable"
)

// Init is an init system.
type Init string

// The init systems.
const (
	Systemd Init = "systemd"
	SysV    Init = "sysvinit"
	OpenRC  Init = "openrc"
)

var (
	// ErrNoInit reports that a root directory has no init system that linerate knows.
	ErrNoInit = errors.New("no init system that linerate knows")
	// ErrNotOurs reports that a file of that name exists and was written, or edited, by another
	// program or a user.
	ErrNotOurs = errors.New("another program or a user has written or edited it; left alone")
)

// Options are what to install, and where.
type Options struct {
	Root    string // / of the host, or the directory of an image
	Init    Init   // empty: the result of Detect
	Program string // absolute path of linerate on the host
	State   string // state directory, absolute on the host; empty: the default
}

// Result is the files and links that were written, or already existed.
type Result struct {
	Init    Init     `json:"init,omitempty"`
	Path    string   `json:"path,omitempty"`
	Links   []string `json:"links,omitempty"` // links that enable it
	Changed bool     `json:"changed"`
}

// Detect returns the init system of a root directory.
func Detect(root string) (Init, error) {
	for _, known := range []struct {
		init Init
		file string
	}{
		{Systemd, "usr/lib/systemd/systemd"}, {Systemd, "lib/systemd/systemd"}, {OpenRC, "sbin/openrc-run"},
		{OpenRC, "usr/sbin/openrc-run"}, {SysV, "etc/init.d"},
	} {
		_, err := os.Stat(filepath.Join(root, known.file))
		if err == nil {
			return known.init, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find the init system: %w", err)
		}
	}
	return "", fmt.Errorf("find the init system of %s: %w", root, ErrNoInit)
}

// complete fills in the init system and refuses paths that its file cannot contain.
func (o Options) complete() (Options, error) {
	o.Root = filepath.Clean(o.Root)
	for _, p := range []string{o.Program, o.State} {
		// Blanks, and characters that systemd, shells and specifiers treat as special.
		if p != "" && (!path.IsAbs(p) || strings.ContainsAny(p, " \t\r\n\"'\\$%`;&|<>()*?[]{}#~")) {
			return o, fmt.Errorf("recover at boot: path %q: must be absolute and plain", p)
		}
	}
	if o.Program == "" {
		return o, errors.New("recover at boot: no program")
	}
	if o.Init == "" {
		var err error
		if o.Init, err = Detect(o.Root); err != nil {
			return o, err
		}
	}
	if _, ok := places[o.Init]; !ok {
		return o, fmt.Errorf("recover at boot: init system %q: %w", string(o.Init), ErrNoInit)
	}
	return o, nil
}

// place is where an init system looks.
type place struct {
	file   string
	mode   fs.FileMode
	target string   // what the links say
	links  []string // that enable it
	first  string   // an interpreter's line, which has to come before everything
}

var places = map[Init]place{
	Systemd: {"etc/systemd/system/linerate-recover.service", 0o644, "../linerate-recover.service",
		[]string{"etc/systemd/system/sysinit.target.wants/linerate-recover.service"}, ""},
	SysV: {"etc/init.d/linerate-recover", 0o755, "../init.d/linerate-recover",
		[]string{"etc/rcS.d/S02linerate-recover"}, "#!/bin/sh\n"},
	OpenRC: {"etc/init.d/linerate-recover", 0o755, "/etc/init.d/linerate-recover",
		[]string{"etc/runlevels/boot/linerate-recover"}, "#!/sbin/openrc-run\n"},
}

// mark begins the line that makes a file ours.
const mark = "# Written by linerate recover --install; sha256 of what follows: "

// made begins the line that names the directories that an installation made, below the root: who
// takes it away takes them away too.
const made = "# Directories made for it: "

// Text gives the content of the file, and fills in what Options left open.
func Text(o Options) (string, error) { return text(o, nil) }

func text(o Options, dirs []string) (string, error) {
	o, err := o.complete()
	if err != nil {
		return "", err
	}
	command := o.Program
	if o.State != "" {
		command += " --state " + o.State
	}
	state := o.State
	if state == "" {
		state = "/var/lib/linerate"
	}
	body := strings.NewReplacer("@COMMAND@", command+" recover", "@STATE@", state, "@PROGRAM@",
		o.Program).Replace(bodies[o.Init])
	if len(dirs) > 0 {
		body = made + strings.Join(dirs, " ") + "\n" + body
	}
	return places[o.Init].first + mark + sum(body) + "\n" + body, nil
}

func sum(body string) string {
	s := sha256.Sum256([]byte(body))
	return hex.EncodeToString(s[:])
}

// ours reports whether some version of this package wrote a file and no edit has changed it since.
func ours(content string) bool {
	if strings.HasPrefix(content, "#!") {
		_, content, _ = strings.Cut(content, "\n")
	}
	rest, ok := strings.CutPrefix(content, mark)
	if !ok {
		return false
	}
	want, body, _ := strings.Cut(rest, "\n")
	return sum(body) == want
}

// madeFor reads the line about directories in a file of ours.
func madeFor(content string) (dirs []string) {
	if !ours(content) {
		return nil
	}
	for line := range strings.Lines(content) {
		if list, ok := strings.CutPrefix(line, made); ok {
			return strings.Fields(list)
		}
	}
	return nil
}

// missing lists the directories below the root that an installation has to make, the upper ones
// first.
func missing(root string, p place) (dirs []string, err error) {
	for _, name := range append([]string{p.file}, p.links...) {
		at := len(dirs)
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			_, err := os.Stat(filepath.Join(root, dir))
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if !slices.Contains(dirs, dir) {
				dirs = slices.Insert(dirs, at, dir)
			}
		}
	}
	return dirs, nil
}

// Install writes the file and the links that enable it. What is in place already stays as it is.
// ErrNotOurs: another file has the name.
func Install(o Options) (Result, error) {
	o, err := o.complete()
	if err != nil {
		return Result{}, err
	}
	p := places[o.Init]
	r := Result{Init: o.Init, Path: filepath.Join(o.Root, p.file)}
	if err := o.trusted(); err != nil {
		return r, fmt.Errorf("install %s: %w", r.Path, err)
	}
	present, err := os.ReadFile(r.Path)
	dirs := madeFor(string(present))
	if errors.Is(err, fs.ErrNotExist) {
		var missingErr error
		if dirs, missingErr = missing(o.Root, p); missingErr != nil {
			return r, fmt.Errorf("install %s: %w", r.Path, missingErr)
		}
	}
	text, textErr := text(o, dirs)
	switch {
	case textErr != nil:
		return r, textErr
	case err == nil && string(present) != text && !ours(string(present)):
		return r, fmt.Errorf("install %s: %w", r.Path, ErrNotOurs)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("install %s: %w", r.Path, err)
	case string(present) != text:
		fsys := durable.OS()
		if err := durable.MkdirAll(fsys, filepath.Dir(r.Path), 0o755); err != nil {
			return r, fmt.Errorf("install %s: %w", r.Path, err)
		}
		if err := durable.Replace(fsys, r.Path, []byte(text), p.mode); err != nil {
			return r, fmt.Errorf("install %s: %w", r.Path, err)
		}
		r.Changed = true
	}
	for _, link := range p.links {
		link = filepath.Join(o.Root, link)
		made, err := enable(link, p.target)
		if err != nil {
			return r, fmt.Errorf("install %s: %w", r.Path, err)
		}
		r.Links, r.Changed = append(r.Links, link), r.Changed || made
	}
	return r, nil
}

// trusted refuses a program or a state directory that another user can change: root runs the one at
// every start, and writes what is in the other. What does not exist yet is not known, as in an
// image that gets its program later.
func (o Options) trusted() error {
	disk, ok := durable.OS().(durable.Truster)
	if !ok {
		return nil
	}
	for _, name := range []string{o.Program, o.State} {
		if name == "" {
			continue
		}
		if err := disk.Trusted(filepath.Join(o.Root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it would run as root at every start: %w", err)
		}
	}
	return nil
}

// enable makes a link; one that is there already and says the same is left.
func enable(link, target string) (made bool, err error) {
	if have, err := os.Readlink(link); err == nil && have == target {
		return false, nil
	}
	if err := durable.MkdirAll(durable.OS(), filepath.Dir(link), 0o755); err != nil {
		return false, err
	}
	if err := os.Symlink(target, link); err != nil {
		return false, err
	}
	return true, durable.OS().SyncDir(filepath.Dir(link))
}

// Uninstall removes the links, the file and the directories that Install made for them. A missing
// one is no error. An edited file stays, with its links, and the error is ErrNotOurs.
func Uninstall(o Options) (Result, error) {
	// Which program it runs does not matter any more.
	if o.Program == "" {
		o.Program = "/linerate"
	}
	o, err := o.complete()
	if err != nil {
		return Result{}, err
	}
	p := places[o.Init]
	r := Result{Init: o.Init, Path: filepath.Join(o.Root, p.file)}
	present, err := os.ReadFile(r.Path)
	switch {
	case err == nil && !ours(string(present)):
		return r, fmt.Errorf("uninstall %s: %w", r.Path, ErrNotOurs)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("uninstall %s: %w", r.Path, err)
	}
	// The links first: a link to nothing is a warning at every start, a file without a link does
	// nothing.
	for _, link := range p.links {
		link = filepath.Join(o.Root, link)
		if have, err := os.Readlink(link); err != nil || have != p.target {
			continue
		}
		r.Links = append(r.Links, link)
	}
	for _, name := range append(r.Links, r.Path) {
		err := os.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = durable.OS().SyncDir(filepath.Dir(name))
		}
		if err != nil {
			return r, fmt.Errorf("uninstall %s: %w", r.Path, err)
		}
		r.Changed = true
	}
	for _, dir := range slices.Backward(madeFor(string(present))) {
		// Who has put something there meanwhile needs it.
		if err := os.Remove(filepath.Join(o.Root, dir)); err != nil && !errors.Is(err, fs.ErrNotExist) &&
			!errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
			return r, fmt.Errorf("uninstall %s: %w", r.Path, err)
		}
	}
	return r, nil
}
