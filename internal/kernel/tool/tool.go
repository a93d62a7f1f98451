package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Runner runs a program and returns what it printed on standard output. The error is
// [ErrNoProgram], an *[ExitError], [ErrTooLong], or that of the context.
type Runner interface {
	Run(ctx context.Context, program string, args ...string) ([]byte, error)
}

// MaxOutput is the longest output in bytes: a table of every setting of a system has a tenth.
const MaxOutput = 4 << 20

// Patience is how long a program may run. PowerShell needs seconds to start on a busy host.
const Patience = time.Minute

var (
	// ErrNoProgram reports that this system has no program with that name.
	ErrNoProgram = errors.New("no such program here")
	// ErrTooLong reports an output above MaxOutput, which is not read further.
	ErrTooLong = errors.New("output too long")
)

// ExitError is a program that ran and failed.
type ExitError struct {
	Program string
	Status  int
	Stderr  string // the first line that it printed there, at most 200 bytes
}

// Error is "program: exit status N: what it said".
func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s: exit status %d", e.Program, e.Status)
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// System runs the programs of this system, found in the directories of administrators and then in
// PATH.
type System struct{}

// Run implements Runner.
func (System) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	path, err := find(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, ErrNoProgram)
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append(os.Environ(), "LC_ALL=C", "LANG=C")
	var stdout, stderr limited
	command.Stdout, command.Stderr = &stdout, &stderr
	// A grandchild may hold the pipe. Without one, only a pause of this process takes so long.
	command.WaitDelay = 10 * time.Second
	err = command.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", program, ctx.Err())
	case stdout.over:
		return nil, fmt.Errorf("%s: %w", program, ErrTooLong)
	case errors.As(err, &exit):
		return stdout.kept.Bytes(), &ExitError{program, exit.ExitCode(), firstLine(stderr.kept.String())}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return stdout.kept.Bytes(), nil
}

// find looks where administrators' programs are: a service or a user may have neither in PATH.
func find(program string) (string, error) {
	if os.PathSeparator == '/' && !strings.Contains(program, "/") {
		for _, dir := range []string{"/sbin/", "/usr/sbin/", "/usr/bin/"} {
			if path, err := exec.LookPath(dir + program); err == nil {
				return path, nil
			}
		}
	}
	return exec.LookPath(program)
}

// limited keeps the first MaxOutput bytes and takes the rest, so that the program ends.
//
// The buffer is not embedded: io.Copy would use its ReadFrom, which has no limit.
type limited struct {
	kept bytes.Buffer
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := MaxOutput - l.kept.Len()
	if len(p) > room {
		l.over = true
		_, _ = l.kept.Write(p[:room]) // a bytes.Buffer takes everything
		return len(p), nil
	}
	return l.kept.Write(p)
}

// firstLine is what a program says about its failure.
func firstLine(text string) string {
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.ToValidUTF8(strings.TrimSpace(line), "?")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "")
	}
	return line
}
