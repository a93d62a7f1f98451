package journal

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
)

func noticePath(dir string) string { return filepath.Join(dir, "notices") }

// notice is one line about a change that a guard has taken back, for people.
func notice(o Outcome) string {
	c := o.Change
	switch {
	case o.Error != "":
		return fmt.Sprintf("change %s of %s could not be taken back: %s", c.ID, c.Knob, o.Error)
	case o.Restored:
		return fmt.Sprintf("change %s of %s went back from %s to %s: %s", c.ID, c.Knob, c.To, c.From, c.Note)
	}
	return fmt.Sprintf("change %s of %s is over: %s", c.ID, c.Knob, cmp.Or(c.Note, "nothing was left to do"))
}

// leaveNotices keeps lines for the next command. Nothing depends on them, so they need not survive
// power loss, and a full disk is no error.
func leaveNotices(fsys durable.FS, dir string, lines []string) {
	file, err := fsys.OpenAppend(noticePath(dir), 0o644)
	if err != nil {
		return
	}
	_, _ = file.Write([]byte(strings.Join(lines, "\n") + "\n")) // As above.
	_ = file.Close()
}

// TakeNotices returns what guards have taken back since it was asked last, one line for each
// change, and forgets it: whoever asks tells the user. Where that cannot be noted, as for someone
// who may only read, there is nothing to tell.
func TakeNotices(fsys durable.FS, dir string) []string {
	// Renamed first, so that two commands at once do not tell the same, and a guard that writes
	// meanwhile begins a file of its own.
	taken := noticePath(dir) + ".told"
	if fsys.Rename(noticePath(dir), taken) != nil {
		return nil
	}
	data, err := fsys.ReadFile(taken)
	_ = fsys.Remove(taken) // A leftover is replaced by the next one.
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
