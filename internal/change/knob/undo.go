package knob

import (
	"context"
	"slices"
)

// Undo is what it takes to get the old value back.
type Undo string

// The kinds of undo.
const (
	UndoNow      Undo = "now"      // a write restores the value at once
	UndoReboot   Undo = "reboot"   // the old value acts after a restart of the system
	UndoDowntime Undo = "downtime" // a write restores it, and packets are lost or the link is down meanwhile
)

// onlyGrow are knobs that the running kernel takes larger values of only, so that a restart brings
// the old value back. Source: kern_mbuf.c of FreeBSD 13 (sysctl_nmbclusters returns EINVAL).
var onlyGrow = map[ID]bool{"sysctl:kern.ipc.nmbclusters": true}

// reloaded are the modules that a write loads again with another parameter; see package reload.
var reloaded = []string{"e1000", "e1000e"}

// Reloads reports whether a write of a knob loads a module again: a parameter that the module reads
// only then.
func Reloads(id ID) bool {
	d, ok := Catalogue().Lookup(id)
	return ok && reloads(id, d.Effect)
}

func reloads(id ID, e Effect) bool {
	return e == EffectAtLoad && id.Kind() == KindModule && slices.Contains(reloaded, id.Subject())
}

// Displacer is a backend for which some writes remove interfaces and create them anew, with another
// index.
type Displacer interface {
	// Displaces returns the names of the interfaces that a write of a knob removes and creates anew.
	Displaces(id ID) []string
}

// Keeper is a backend that takes some values from configuration files, because the kernel does not
// show what it was given.
type Keeper interface {
	// Keep records the value that a knob has now, so that it outlasts a change of those files.
	Keep(id ID) error
}

// Coupler is a backend that knows which other knobs a write of a knob may set as well: a kernel
// that sets the queue of a disk anew for another scheduler, a driver that starts its NIC again.
type Coupler interface {
	// Coupled returns those knobs with what they hold, as far as this host has them now.
	Coupled(ctx context.Context, id ID) []Setting
}

// UndoOf returns what an undo of a knob takes, whatever its system: what acts at the next boot is
// undone by the next boot, and what disturbs its interface does so again. It is the one place that
// knows; catalogues and plans ask it.
func UndoOf(id ID, e Effect, class Disturbance) Undo {
	switch {
	case reloads(id, e):
		return UndoDowntime
	case onlyGrow[id] || e == EffectAtBoot || class >= DisturbsHost:
		return UndoReboot
	case class >= DisturbsBriefLoss:
		return UndoDowntime
	}
	return UndoNow
}

// Says returns a clause that says what an undo takes.
func (u Undo) Says() string {
	switch u {
	case UndoReboot:
		return "the old value acts only after a reboot"
	case UndoDowntime:
		return "packets are lost, or the link is down, for a moment"
	}
	return "at once"
}
