package journal

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
)

// ErrNotOurs reports a journal that names a file which linerate never writes: it was forged or
// damaged, and the file is left alone.
var ErrNotOurs = errors.New("not a file that linerate writes")

// Trusted returns nil unless another user can write to the state directory dir; a directory that
// does not exist yet is trusted. [Open] and [History] refuse such a directory: undo writes what the
// journal says, and root would write it for any user who can forge a journal; and a forged history
// hides what is in force. The error is an fs.ErrPermission.
func Trusted(fsys durable.FS, dir string) error {
	return durable.SafeState(fsys, dir, logPath(dir), lockPath(dir))
}

// startDirs are the directories, below the root of a host, of files that set a knob at its start
// (package persist).
var startDirs = []string{
	"etc/sysctl.d", "etc/modprobe.d", "etc/systemd/network", "etc/udev/rules.d", "etc/network/if-up.d",
	"etc/NetworkManager/conf.d", "etc/NetworkManager/dispatcher.d", "etc/rc2.d",
}

// ourFile checks a name before undo removes or edits the file: one of linerate's names, in one of
// those directories. No other file is touched, whatever the journal says.
func ourFile(root, name string) error {
	below, err := filepath.Rel(root, name)
	if err == nil {
		below = filepath.ToSlash(below)
		dir, base := path.Dir(below), path.Base(below)
		// A drop-in of a .link file has a directory of its own.
		if strings.HasSuffix(dir, ".link.d") {
			dir = path.Dir(dir)
		}
		if slices.Contains(startDirs, dir) && strings.Contains(base, "linerate") {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", name, ErrNotOurs)
}

// ourDirectory checks the name of a directory before undo removes it: one of those directories, one
// above or one below.
func ourDirectory(root, name string) error {
	below, err := filepath.Rel(root, name)
	if err == nil {
		below = filepath.ToSlash(below)
		for _, dir := range startDirs {
			if below == dir || strings.HasPrefix(dir, below+"/") ||
				path.Dir(below) == dir && strings.HasSuffix(below, ".link.d") {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: %w", name, ErrNotOurs)
}
