package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/reload"
)

// moduleKnobs are parameters of kernel modules, loaded or built in:
// /sys/module/NAME/parameters/PARAM.
//
// Parameters of a NIC driver that have no file, because the module reads them only while it is
// loaded, are written by loading it again; see package reload.
type moduleKnobs struct {
	root    string // /sys/module
	catalog *knob.Catalog
	knobs   knob.Backend // those of the interfaces of a driver
	step    func(string) // called after each step of a reload
}

// runDir is where the notes of package reload are: gone after a restart, as their modules.
const runDir = "/run/linerate"

// driver returns the module of a parameter that a write loads again; ok is false for all others.
func (k moduleKnobs) driver(module, parameter string) (d reload.Driver, ok bool) {
	if k.knobs == nil || !knob.Reloads(moduleID(module, parameter)) {
		return d, false
	}
	if file, err := k.file(module, parameter); err != nil || exists(file) {
		return d, false
	}
	return reload.Driver{Module: module, Knobs: k.knobs, Run: runDir, Step: k.step,
		Configured: func(module string) map[string]string { return bootconf.ModuleOptions(os.DirFS("/"), module) }}, true
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func (k moduleKnobs) file(module, parameter string) (string, error) {
	// The subject may hold slashes and dots for other kinds; here it is one element of a path.
	if strings.Contains(module, "/") || module == "." || module == ".." || parameter == "." || parameter == ".." {
		return "", fmt.Errorf("%w: no module has such a name", fs.ErrNotExist)
	}
	return filepath.Join(k.root, module, "parameters", parameter), nil
}

// read returns the value. For a list of choices with brackets around the current one, as pcie_aspm
// shows its policy, it returns the current one.
func (k moduleKnobs) read(module, parameter string) (knob.Value, error) {
	if d, ok := k.driver(module, parameter); ok {
		return d.Value(parameter)
	}
	file, err := k.file(module, parameter)
	if err != nil {
		return "", err
	}
	v, err := readPseudo(unix.AT_FDCWD, file)
	if err != nil {
		return "", k.explain(module, parameter, err, knob.ErrNotSupported)
	}
	if d, ok := k.catalog.Lookup(moduleID(module, parameter)); ok && d.Form == knob.FormWord {
		if chosen := bracketed(string(v)); chosen != "" {
			v = knob.Value(chosen)
		}
	}
	return v, nil
}

// write sets a parameter of a module that is loaded. EPERM and EOPNOTSUPP come from the owner of
// the parameter, behind a file that could be opened: it does not take a new value while it runs.
func (k moduleKnobs) write(module, parameter string, v knob.Value) error {
	if d, ok := k.driver(module, parameter); ok {
		return d.Set(context.Background(), parameter, v)
	}
	file, err := k.file(module, parameter)
	if err != nil {
		return err
	}
	err = k.explain(module, parameter, writePseudo(unix.AT_FDCWD, file, v), knob.ErrReadOnly)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w: the module refuses a new value while it runs: %w", knob.ErrReadOnly, err)
	}
	return err
}

func (k moduleKnobs) check(module, parameter string, _ knob.Value) error {
	if d, ok := k.driver(module, parameter); ok {
		return d.Check()
	}
	file, err := k.file(module, parameter)
	if err != nil {
		return err
	}
	return k.explain(module, parameter, checkPseudo(unix.AT_FDCWD, file), knob.ErrReadOnly)
}

// explain distinguishes the reasons for a missing parameter.
//
// A parameter that is declared with mode 0 never gets a file: the e1000 family declares all of its
// parameters so. It can then neither be read nor be changed until the module is loaded again;
// hidden is the answer for a parameter that the catalogue knows.
func (k moduleKnobs) explain(module, parameter string, err, hidden error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, statErr := os.Stat(filepath.Join(k.root, module)); statErr != nil {
		return fmt.Errorf("%w: the module is not loaded", fs.ErrNotExist)
	}
	if _, known := k.catalog.Lookup(moduleID(module, parameter)); known {
		return fmt.Errorf("%w: the module does not show this parameter while it is loaded", hidden)
	}
	return fmt.Errorf("%w: the module has no such parameter, or does not show it", fs.ErrNotExist)
}

func moduleID(module, parameter string) knob.ID {
	return knob.ID(knob.KindModule + ":" + module + "/" + parameter)
}

// bracketed returns the word in brackets among several, or "".
func bracketed(text string) string {
	words := strings.Fields(text)
	i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "[") && strings.HasSuffix(w, "]") })
	if i < 0 || len(words) < 2 {
		return ""
	}
	return strings.Trim(words[i], "[]")
}
