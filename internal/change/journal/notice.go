package journal

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
)

func noticePath(dir string) string { return filepath.Join(dir, "notices") }

// notice returns one line for the user about a change that a guard has taken back.
func notice(o Outcome) string {
	c := o.Change
	switch {
	case o.Error != "" && !o.Restored:
		return fmt.Sprintf("change %s of %s could not be taken back: %s", c.ID, c.Knob, o.Error)
	case o.Restored:
		return fmt.Sprintf("change %s of %s went back from %s to %s: %s", c.ID, c.Knob, c.To, c.From, c.Note)
	}
	return fmt.Sprintf("change %s of %s is over: %s", c.ID, c.Knob, cmp.Or(c.Note, "nothing was left to do"))
}

// leaveNotices stores lines for the next command. Nothing depends on them, so they need not survive
// power loss, and a full disk is not an error.
func leaveNotices(fsys durable.FS, dir string, lines []string) {
	if len(lines) == 0 {
		return
	}
	file, err := fsys.OpenAppend(noticePath(dir), 0o644)
	if err != nil {
		return
	}
	_, _ = file.Write([]byte(strings.Join(lines, "\n") + "\n")) // As above.
	_ = file.Close()
}

// HasNotices reports whether TakeNotices may have something to return.
func HasNotices(fsys durable.FS, dir string) bool {
	_, err := fsys.Stat(noticePath(dir))
	return err == nil
}

// TakeNotices returns one line for each change that guards have taken back since the last call, and
// forgets them; the caller shows them to the user. Without permission to record that, it returns
// nothing.
func TakeNotices(fsys durable.FS, dir string) []string {
	// A look first, because a rename waits for a file system that is frozen, and most often there is
	// nothing to rename. What another user may have written is not the word of a guard.
	if !HasNotices(fsys, dir) || Trusted(fsys, dir) != nil {
		return nil
	}
	// Rename first, so that two concurrent commands do not report the same lines, and a guard that
	// writes meanwhile starts a new file.
	taken := noticePath(dir) + ".taken"
	if fsys.Rename(noticePath(dir), taken) != nil {
		return nil
	}
	data, err := fsys.ReadFile(taken)
	_ = fsys.Remove(taken) // The next rename replaces a leftover.
	if err != nil {
		return nil
	}
	// A guard that tries again leaves the same line again, and a full disk takes the file without a
	// line.
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}
