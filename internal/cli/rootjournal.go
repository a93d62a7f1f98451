package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/base/shell"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// rootState is root's state directory (Filesystem Hierarchy Standard): only root changes a host, so
// the changes of a host are in the journal there.
const rootState = "/var/lib/linerate"

// mindRoot refuses to answer a question about the changes of this host from the empty journal of a
// user who forgot sudo: root's journal has changes in force, or cannot be read. A user with changes
// of his own (in a private world, or in a user namespace) gets a warning instead.
//
// Root's journal plays no part when the user names a state directory.
func (a *app) mindRoot(command string) error {
	why := a.rootsChanges()
	if why == "" {
		return nil
	}
	if own, err := a.history(); err == nil && inForce(own) > 0 {
		a.warn("%s; this is the journal of your own user", why)
		return nil
	}
	return statusError{exitNotPermitted, command + ": " + why, "sudo linerate " + shell.Join(a.args)}
}

// rootsChanges returns why root's journal matters to this user; empty: it does not.
func (a *app) rootsChanges() string {
	if a.stateChosen() {
		return ""
	}
	return rootJournal(rootState)
}

// stateChosen reports whether root's journal plays no part: the state directory is root's, or one
// that the user named.
func (a *app) stateChosen() bool {
	return os.Geteuid() == 0 || a.state != "" || a.env("LINERATE_STATE") != ""
}

// mindRootsRuns warns a user who forgot sudo that an empty list is not what root stored.
func (a *app) mindRootsRuns(own []string, kind runs.Kind) {
	if len(own) > 0 || a.stateChosen() {
		return
	}
	ids, err := runs.In(durable.OS(), rootState, kind, 0).List()
	switch {
	case errors.Is(err, fs.ErrPermission):
		a.warn("what root stored in %s may not be read: use sudo", rootState)
	case err != nil:
		a.warn("what root stored in %s: %s", rootState, oneSentence(err))
	case len(ids) > 0:
		a.warn("root stored %s in %s: use sudo", unit.Counted(len(ids), "result"), rootState)
	}
}

// rootJournal returns why root's journal matters to another user; empty: it has nothing in force.
func rootJournal(dir string) string {
	changes, err := journal.History(durable.OS(), dir)
	var unsafe *durable.TrustError
	switch {
	case errors.As(err, &unsafe): // an fs.ErrPermission too
		return "root's journal: " + oneSentence(err)
	case errors.Is(err, fs.ErrPermission):
		return "root's journal may not be read: use sudo"
	case err != nil:
		return "root's journal: " + oneSentence(err)
	}
	if n := inForce(changes); n > 0 {
		return fmt.Sprintf("root's journal in %s has %s in force: use sudo", dir, unit.Counted(n, "change"))
	}
	return ""
}

// inForce counts the changes that are not over. A change of an earlier boot is, unless files bring
// it back, even before a command has recorded that.
func inForce(changes []journal.Change) int {
	boot, err := sys.BootID()
	n := 0
	for _, c := range changes {
		if c.State != journal.Undone && (c.State == journal.Persisted || err != nil || c.BootID == boot || c.Knob.InFile()) {
			n++
		}
	}
	return n
}
