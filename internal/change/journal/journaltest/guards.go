package journaltest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
)

// aliveName is a file that a guard keeps locked as long as it lives.
const aliveName = "guard alive"

// Guard does what the hidden command of the program does, with the arguments that the journal
// starts a guard with.
func Guard(args []string, options func(state string) journal.Options) error {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	state := flags["--state"]
	deadline, err := time.ParseDuration(flags["--deadline"])
	if err != nil {
		return err
	}
	alive, err := lockSoon(filepath.Join(state, aliveName))
	if err != nil {
		return err
	}
	defer alive.Close() // Or whenever and however this process ends.
	return journal.RunGuard(context.Background(), journal.GuardConfig{Journal: options(state),
		Mode: journal.Mode(flags["--mode"]), Session: flags["--session"], For: deadline})
}

// AwaitGuards keeps the directories of a test until the guards of a state directory have ended: a
// guard outlives its writer, and still records when the values are back.
func AwaitGuards(t *testing.T, state string) {
	t.Cleanup(func() { GuardEnds(t, state) })
}

// GuardEnds waits until no guard of a state directory is left.
func GuardEnds(t *testing.T, state string) {
	t.Helper()
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return // The writer died before there was anything to guard.
	}
	alive, err := lockSoon(filepath.Join(state, aliveName))
	if err != nil {
		t.Fatal(err)
	}
	alive.Close()
}

// WithoutStorage reports whether a guard that has ended went on without its storage: it waits two
// seconds, and a busy disk may take longer. It says so, and leaves to recovery what it could not
// take back and what the journal does not know.
func WithoutStorage(state string) bool {
	log, _ := os.ReadFile(filepath.Join(state, "guard.log")) // no guard wrote one
	return strings.Contains(string(log), journal.ErrSilent.Error())
}

// lockSoon takes a lock as soon as its holder is gone.
func lockSoon(path string) (io.Closer, error) {
	return soon(durable.ErrLocked, func() (io.Closer, error) { return durable.OS().Lock(path) })
}
