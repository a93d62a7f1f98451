package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A thread that writes to a frozen file system sleeps in the kernel until the thaw, no signal wakes
// it, and its process cannot end before it. So another process writes first.

const (
	// probePatience is how long storage may take for one write before it counts as silent. A busy
	// disk needs a second or two.
	probePatience = 10 * time.Second
	// probeStart is how long the other process may take to begin; without it nothing is known.
	probeStart = 10 * time.Second
	// probeStep is how often it is looked at whether the kernel keeps it waiting for a thaw.
	probeStep = 50 * time.Millisecond
	// probeFrozen is how many looks in a row make a file system frozen.
	probeFrozen = 20
)

// The answers of the process that tries the storage.
const (
	probeBegins = "begins\n"
	probeEnds   = "ends\n"
)

// AwaitStorage returns ErrSilent when the storage of a state directory takes no writes: within ten
// seconds, or one where the kernel says that the file system is frozen. Other errors mean that
// nothing is known. It starts `EXE ARGS… guard --state DIR --probe`, which calls Probe and which
// outlives this process when it hangs.
func AwaitStorage(o GuardOptions, dir string) error {
	if err := awaitStorage(o, dir); err != nil {
		return fmt.Errorf("try the storage of %s: %w", dir, err)
	}
	return nil
}

func awaitStorage(o GuardOptions, dir string) error {
	if _, err := os.Stat(lockPath(dir)); err != nil {
		return err // nothing that Probe could write to
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	exe, err := guardProgram(o.Exe)
	if err != nil {
		return err
	}
	command := exec.Command(exe, append(append([]string{}, o.Args...), "guard", "--state", dir, "--probe")...)
	if o.Exe == "" {
		command.Args[0] = os.Args[0] // as in startGuard
	}
	command.Dir = "/" // Keeps no mount busy.
	if err := ownSession(command); err != nil {
		return err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close() // Read from only.
	command.Stdout = theirs
	err = command.Start()
	_ = theirs.Close() // The process has its own copy.
	if err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // Reaps it; the pipe has its answer.
	return hearProbe(out, func() bool { return waitsForThaw(command.Process.Pid) })
}

// hearProbe waits for the two answers. thaw reports whether the kernel keeps the process waiting
// for a file system that is frozen.
func hearProbe(out io.Reader, thaw func() bool) error {
	lines := make(chan string, 2)
	go func() {
		defer close(lines)
		for in := bufio.NewReader(out); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	switch line, answered := awaitFor(lines, probeStart); {
	case !answered:
		return errors.New("the process that tries it did not begin")
	case line != probeBegins:
		return errors.New("the process that tries it ended before it began")
	}
	// Looks are counted, and not time: a pause of this process says nothing of the storage.
	look := time.NewTicker(probeStep)
	defer look.Stop()
	frozen := 0
	for range probePatience / probeStep {
		select {
		case <-lines: // Even if the write failed: storage that refuses does answer.
			return nil
		case <-look.C:
		}
		if frozen++; !thaw() {
			frozen = 0
		}
		if frozen == probeFrozen {
			return silence{within: probeFrozen * probeStep}
		}
	}
	select {
	case <-lines:
		return nil
	default:
		return silence{within: probePatience}
	}
}

// Probe writes to the storage of a state directory, and says on out when it begins and ends. It
// sets the time of the lock, which is there after the first command.
func Probe(out io.Writer, dir string) error {
	if _, err := io.WriteString(out, probeBegins); err != nil {
		return err
	}
	now := time.Now()
	if err := os.Chtimes(lockPath(dir), now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		// The reader needs the answer and not its reason: a journal that cannot be written says why.
		_, _ = io.WriteString(out, probeEnds)
		return err
	}
	_, err := io.WriteString(out, probeEnds)
	return err
}
