package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// Host reads and writes one system through its layers. It caches nothing and is safe for concurrent
// use within one process.
type Host struct {
	catalog *knob.Catalog
	kinds   map[string]accessor
	root    string // who may write, for hints

	// changed runs after a write that took effect.
	changed func(id knob.ID)

	mu sync.Mutex // of writes, each with its reading back
}

// accessor reads and writes the knobs of one kind. Its errors are plain: Host adds the knob. It
// returns ErrNotSupported for a well-formed attribute that it does not know, and fs.ErrNotExist for
// a missing subject.
type accessor interface {
	read(ctx context.Context, id knob.ID) (knob.Value, error)
	write(ctx context.Context, id knob.ID, v knob.Value) error
	// check reports without writing whether a write would be refused.
	check(ctx context.Context, id knob.ID, v knob.Value) error
	// subjects lists what a pattern of the catalogue may stand for.
	list(ctx context.Context, pattern knob.ID) ([]knob.ID, error)
}

// ErrUnchanged reports a write that the system accepted and that changed nothing.
var ErrUnchanged = errors.New("the system reported success, and the value is as before")

// Read returns the value in canonical form.
func (h *Host) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	v, err := h.read(ctx, id)
	if err != nil {
		return "", h.fail("read", id, err)
	}
	return v, nil
}

func (h *Host) read(ctx context.Context, id knob.ID) (knob.Value, error) {
	k, err := h.accessor(ctx, id)
	if err != nil {
		return "", err
	}
	v, err := k.read(ctx, id)
	if err != nil {
		return "", err
	}
	if d, ok := h.catalog.Lookup(id); ok {
		if c, err := d.Canonical(v); err == nil {
			return c, nil
		}
	}
	return v.Squeeze(), nil
}

// Write sets the value and reads it back. Form is checked here; the range is left to the system,
// because an original outside of the catalogue's range must go back.
func (h *Host) Write(ctx context.Context, id knob.ID, v knob.Value) error {
	if err := h.write(ctx, id, v); err != nil {
		return h.fail("write", id, err)
	}
	return nil
}

func (h *Host) write(ctx context.Context, id knob.ID, v knob.Value) error {
	k, err := h.accessor(ctx, id)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before, err := h.read(ctx, id)
	if err != nil {
		return err
	}
	if v, err = h.form(id, v); err != nil {
		return err
	}
	if err := k.check(ctx, id, v); err != nil {
		return err
	}
	if before == v {
		return nil
	}
	if err := k.write(ctx, id, v); err != nil {
		return err
	}
	after, err := h.read(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("read it back: %w", err)
	case after == before:
		return fmt.Errorf("%w: %s", ErrUnchanged, before)
	}
	if h.changed != nil {
		h.changed(id)
	}
	return nil
}

// CheckWrite implements knob.Checker.
func (h *Host) CheckWrite(ctx context.Context, id knob.ID, v knob.Value) error {
	k, err := h.accessor(ctx, id)
	if err == nil {
		_, err = k.read(ctx, id)
	}
	if err == nil {
		v, err = h.form(id, v)
	}
	if err == nil {
		err = k.check(ctx, id, v)
	}
	if err != nil {
		return h.fail("check", id, err)
	}
	return nil
}

// Instances lists the knobs of this host that a definition covers.
func (h *Host) Instances(ctx context.Context, d knob.Definition) ([]knob.ID, error) {
	k, err := h.accessor(ctx, d.Pattern)
	if err != nil {
		return nil, h.fail("list", d.Pattern, err)
	}
	if !strings.Contains(string(d.Pattern), "*") {
		return []knob.ID{d.Pattern}, nil
	}
	all, err := k.list(ctx, d.Pattern)
	if err != nil {
		return nil, h.fail("list", d.Pattern, err)
	}
	var own []knob.ID
	for _, id := range all {
		if best, ok := h.catalog.Lookup(id); ok && best.Pattern == d.Pattern && !slices.Contains(own, id) {
			own = append(own, id)
		}
	}
	return own, nil
}

func (h *Host) accessor(ctx context.Context, id knob.ID) (accessor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, ok := h.kinds[id.Kind()]
	if !ok {
		return nil, fmt.Errorf("%w: this system has no knobs of this kind", knob.ErrNotSupported)
	}
	// What goes into a command line must not be read as an option of the program.
	if strings.HasPrefix(id.Subject(), "-") || strings.HasPrefix(id.Attribute(), "-") {
		return nil, fs.ErrNotExist
	}
	return k, nil
}

// form refuses a value that is not one line of the definition's form.
func (h *Host) form(id knob.ID, v knob.Value) (knob.Value, error) {
	if strings.ContainsFunc(string(v), func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' }) {
		return "", &knob.RangeError{Value: v, Allowed: "text without control characters"}
	}
	if d, ok := h.catalog.Lookup(id); ok {
		return d.Canonical(v)
	}
	return v.Squeeze(), nil
}

// fail completes an error with its knob and a hint.
func (h *Host) fail(op string, id knob.ID, err error) error {
	e := &knob.Error{Op: op, Knob: id, Err: err}
	switch {
	case errors.Is(err, tool.ErrNoProgram):
		e.Err = fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
		return e.WithHint("this release of the system lacks the program that linerate reads this knob with")
	case errors.Is(err, ErrUnchanged):
		return e.WithHint("another program or a policy may hold the value; the system's own tool shows more")
	case errors.Is(err, knob.ErrReadOnly), errors.Is(err, knob.ErrInvalid):
		return e
	case errors.Is(err, fs.ErrPermission):
		return e.WithHint("this needs " + h.root)
	case errors.Is(err, fs.ErrNotExist):
		return e.WithHint("this host has no such setting, interface or entry")
	}
	return e
}

// answered sorts the failure of a program by what it said, in the language C. Every word is one
// that the sources of ifconfig, ipadm or dladm have.
func answered(err error) error {
	var exit *tool.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	said := strings.ToLower(exit.Stderr)
	for _, c := range []struct {
		of    error
		words []string
	}{
		{fs.ErrPermission, []string{"permission denied", "not permitted", "insufficient privileges", "not privileged"}},
		{fs.ErrNotExist, []string{"does not exist", "no such", "not found", "object not found", "invalid link",
			"unknown property", "invalid property", "not configured"}},
		{knob.ErrNotSupported, []string{"not supported", "unrecognized"}},
		{knob.ErrInvalid, []string{"invalid argument", "invalid value", "invalid", "out of range", "bad value",
			"too large", "too small"}},
		{errBusy, []string{"link busy", "try again later", "device busy", "in use"}},
	} {
		for _, w := range c.words {
			if strings.Contains(said, w) {
				return fmt.Errorf("%w: %w", c.of, err)
			}
		}
	}
	return err
}

// errBusy is the answer of a driver that cannot change a running link.
var errBusy = errors.New(
	"the link is in use: remove its IP interface first, set the value, and make the interface again")
