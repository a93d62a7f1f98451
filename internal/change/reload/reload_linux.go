package reload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/kmod"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/standing"
)

// Driver is the module of a NIC driver on the running system. All fields but Step are required.
type Driver struct {
	Module string
	Knobs  knob.Backend // of the interfaces
	// Configured returns the parameters with which modprobe would load a module.
	Configured func(module string) map[string]string
	Run        string            // directory of the notes, which ends with the kernel: /run/linerate
	Step       func(name string) // called after each step; nil: nothing is
}

func (d Driver) step(name string) {
	if d.Step != nil {
		d.Step(name)
	}
}

// adapter is a port of the driver.
type adapter struct {
	slot, name string
	index      int
}

// adapters returns the ports of the driver in the order of their addresses.
func (d Driver) adapters() ([]adapter, error) {
	var all []adapter
	slots, err := filepath.Glob("/sys/bus/pci/drivers/" + d.Module + "/????:??:??.?")
	if err != nil {
		return nil, err
	}
	for _, slot := range slots {
		entries, err := os.ReadDir(filepath.Join(slot, "net"))
		if err != nil || len(entries) != 1 {
			return nil, fmt.Errorf("%w: the interface of %s is not in this network namespace", knob.ErrNotSupported,
				filepath.Base(slot))
		}
		a := adapter{slot: filepath.Base(slot), name: entries[0].Name()}
		b, err := os.ReadFile(filepath.Join(slot, "net", a.name, "ifindex"))
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Sscan(string(b), &a.index); err != nil {
			return nil, fmt.Errorf("index of %s: %w", a.name, err)
		}
		all = append(all, a)
	}
	return all, nil
}

func (d Driver) indexes() map[string]int {
	adapters, err := d.adapters()
	if err != nil {
		return nil
	}
	indexes := map[string]int{}
	for _, a := range adapters {
		indexes[a.slot] = a.index
	}
	return indexes
}

// Interfaces returns the interfaces that a reload takes down and creates anew.
func (d Driver) Interfaces() []string {
	adapters, err := d.adapters()
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range adapters {
		names = append(names, a.name)
	}
	return names
}

// Value returns what the module was loaded with, or knob.Absent. A module that is not loaded, while
// no reload is under way, is fs.ErrNotExist.
func (d Driver) Value(parameter string) (knob.Value, error) {
	n, err := d.present()
	if err != nil {
		return "", err
	}
	if n.Pending == nil && !kmod.Loaded(d.Module) {
		return "", fmt.Errorf("%w: the module is not loaded", fs.ErrNotExist)
	}
	if v, ok := n.Parameters[parameter]; ok {
		return knob.Value(v), nil
	}
	return knob.Absent, nil
}

// Check reports why the module cannot be loaded with another value, without touching anything.
func (d Driver) Check() error {
	n, err := d.present()
	if err != nil {
		return err
	}
	if n.Pending != nil {
		return nil // what is down must come up
	}
	_, _, err = d.ready(d.outline)
	return err
}

// ready returns what take returns of all interfaces, and the modules to load from.
func (d Driver) ready(take func() (picture, error)) (picture, kmod.Tree, error) {
	tree, err := kmod.Running()
	if err == nil {
		err = tree.Ready(d.Module)
	}
	if err != nil {
		return picture{}, tree, err
	}
	p, err := take()
	var refusal *standing.Refusal
	if errors.As(err, &refusal) {
		err = fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
	}
	return p, tree, err
}

// Set loads the module with a value of a parameter, or without it (knob.Absent), and puts
// everything back. It finishes a reload that was interrupted even if the value is in force.
func (d Driver) Set(ctx context.Context, parameter string, v knob.Value) error {
	lock, err := d.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	n, err := d.present()
	if err != nil {
		return err
	}
	present, given := n.Parameters[parameter]
	if !given {
		present = string(knob.Absent)
	}
	if n.Pending == nil && present == string(v) {
		return nil
	}
	tree, err := kmod.Running()
	if err != nil {
		return err
	}
	if n.Pending == nil {
		p, ready, err := d.ready(func() (picture, error) { return d.take(ctx) })
		if err != nil {
			return err
		}
		tree = ready
		n.Pending = &pending{Picture: p}
		if err := d.follow(n, parameter, knob.Value(present), v); err != nil {
			return err
		}
		if err := d.record(n); err != nil {
			return err
		}
		d.step("noted")
	}
	old := n.Parameters
	n.Parameters = maps.Clone(old)
	if n.Parameters == nil {
		n.Parameters = map[string]string{}
	}
	if n.Parameters[parameter] = string(v); v == knob.Absent {
		delete(n.Parameters, parameter)
	}
	if err := d.replace(ctx, tree, n, old, parameter); err != nil {
		return err
	}
	return d.finish(ctx, n, parameter)
}

// replace unloads the module and loads it with the parameters of the note. If the kernel does not
// take these, the module gets the old ones, and its interfaces what they had.
func (d Driver) replace(ctx context.Context, tree kmod.Tree, n *note, old map[string]string, parameter string) error {
	if maps.Equal(n.Parameters, old) && maps.Equal(d.indexes(), n.Indexes) {
		return nil // interrupted before anything was down
	}
	if kmod.Loaded(d.Module) {
		if err := kmod.Unload(d.Module); err != nil {
			return err
		}
	}
	d.step("unloaded")
	shown := n.Pending.Picture.Shown
	err := tree.Load(ctx, d.Module, text(shown, n.Parameters))
	if err != nil {
		n.Parameters = old
		if again := tree.Load(ctx, d.Module, text(shown, old)); again != nil {
			return errors.Join(err, again)
		}
	}
	d.step("loaded")
	if noteErr := d.record(n); noteErr != nil {
		return errors.Join(err, noteErr)
	}
	d.step("loaded and noted")
	if err != nil {
		return errors.Join(err, d.finish(ctx, n, parameter))
	}
	return nil
}

// text returns parameters as the kernel takes them: those that the module shows, and those that it
// was or is to be loaded with.
func text(shown, given map[string]string) string {
	all := maps.Clone(shown)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, given)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		words = append(words, name+"="+all[name])
	}
	return strings.Join(words, " ")
}

// attempts bounds how often a picture is put back that does not come back whole: a later one shows
// what the host has instead.
const attempts = 3

// finish puts the picture back and ends the reload.
func (d Driver) finish(ctx context.Context, n *note, parameter string) error {
	p := n.Pending.Picture
	ended := ""
	if f, ok := n.Followed[parameter]; ok {
		present, given := n.Parameters[parameter]
		back := given && present == string(f.Value) || !given && f.Value == knob.Absent
		for i := range p.Cards {
			p.Cards[i].Knobs = maps.Clone(p.Cards[i].Knobs)
			for attribute, v := range f.Knobs[p.Cards[i].Slot] {
				id := knob.ID(knob.KindEthtool + ":" + p.Links[i].Name + "/" + attribute)
				if delete(p.Cards[i].Knobs, id); back {
					p.Cards[i].Knobs[id] = v
				}
			}
		}
		if back {
			ended = parameter
		}
	}
	left, err := d.putBack(ctx, p)
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("after loading %s anew these did not come back: %s", d.Module,
			strings.Join(left, ", ")))
	}
	if err != nil {
		n.Pending.Attempts++
		if n.Pending.Attempts >= attempts {
			n.Pending = nil
		}
		n.Indexes = d.indexes()
		return errors.Join(err, d.record(n))
	}
	delete(n.Followed, ended)
	n.Pending, n.Indexes = nil, d.indexes()
	if err := d.record(n); err != nil {
		return err
	}
	d.step("done")
	return nil
}

// cardPatience bounds how long the new interfaces may take to appear, and to become what they were:
// duplicate address detection takes one or two seconds, and a link some more. Only the pauses
// between attempts count: on a host that is starved, each attempt takes seconds itself.
const cardPatience = 20 * time.Second

// putBack gives the interfaces of the loaded module back what they had, and returns what did not
// come back.
func (d Driver) putBack(ctx context.Context, p picture) (left []string, err error) {
	c, err := nl.Dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var waited time.Duration
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		left, err = d.attempt(ctx, c, p)
		if err == nil && len(left) == 0 || waited >= cardPatience {
			return left, err
		}
		for waits := true; waits; {
			time.Sleep(pause)
			waited += pause
			// A carrier comes without another attempt, which costs far more than this look.
			dark, lookErr := p.Dark(c)
			waits = err == nil && lookErr == nil && slices.Equal(dark, left) && waited < cardPatience
		}
	}
}

// attempt goes through all steps once; each leaves alone what is in place.
func (d Driver) attempt(ctx context.Context, c *nl.Client, p picture) (left []string, err error) {
	index, err := d.name(c, p)
	if err != nil {
		return nil, err
	}
	d.step("named")
	var errs []error
	for i, l := range p.Links {
		now, err := c.LinkByName(l.Name)
		if err != nil {
			return nil, err
		}
		if !now.Up {
			errs = append(errs, l.Dress(c, index[l.Index]))
			d.writeSysctls(p.Cards[i])
			d.writeKnobs(ctx, c, l, p.Cards[i], false)
		}
	}
	d.step("dressed")
	for _, l := range p.Links {
		errs = append(errs, l.SetUp(c))
	}
	d.step("up")
	for _, card := range p.Cards {
		d.writeSysctls(card)
	}
	errs = append(errs, p.Return(c, index))
	d.step("returned")
	present := make([]map[knob.ID]knob.Value, len(p.Cards))
	for i, card := range p.Cards {
		present[i] = d.writeKnobs(ctx, c, p.Links[i], card, true)
		writeAffinity(card)
		writeAlertness(c, p.Links[i].Name, card)
	}
	d.step("tuned")
	left, err = p.Missing(c)
	for i, card := range p.Cards {
		left = append(left, differ(c, p.Links[i], card, present[i])...)
	}
	if len(left) == 0 {
		return nil, err // a failed request whose effect is there is none
	}
	return left, errors.Join(append(errs, err)...)
}

// name gives the interfaces their old names, and returns the new index of each old one. udev(7) may
// be renaming them at the same time, to the same names.
func (d Driver) name(c *nl.Client, p picture) (map[int]int, error) {
	now, err := d.adapters()
	if err != nil {
		return nil, err
	}
	index := map[int]int{}
	for i, l := range p.Links {
		at := slices.IndexFunc(now, func(a adapter) bool { return a.slot == p.Cards[i].Slot })
		if at < 0 {
			return nil, fmt.Errorf("no adapter at %s: %w", p.Cards[i].Slot, fs.ErrNotExist)
		}
		index[l.Index] = now[at].index
		if now[at].name == l.Name {
			continue
		}
		// The name may be that of another new interface, which then waits for its own.
		if other, err := c.LinkByName(l.Name); err == nil {
			if !slices.ContainsFunc(now, func(a adapter) bool { return a.index == other.Index }) {
				return nil, fmt.Errorf("the name %s: %w", l.Name, fs.ErrExist)
			}
			if err := rename(c, other.Index, l.Name, fmt.Sprintf("lr%d", other.Index)); err != nil {
				return nil, err
			}
			for j := range now {
				if now[j].index == other.Index {
					now[j].name = fmt.Sprintf("lr%d", other.Index)
				}
			}
		}
		if err := rename(c, now[at].index, now[at].name, l.Name); err != nil {
			return nil, err
		}
	}
	return index, nil
}

// rename takes a link down first: most kernels rename no link that is up.
func rename(c *nl.Client, index int, from, to string) error {
	if now, err := c.LinkByName(from); err == nil && now.Up {
		if err := c.SetDown(from); err != nil {
			return err
		}
	}
	return standing.Rename(c, index, to)
}
