package traffictest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
)

// killWait is how long pipes of a killed program may stay open, which happens when it has left
// children behind.
const killWait = 5 * time.Second

// Run runs a program, which must succeed within a minute, and returns its output.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := Output(t, patience, testenv.Program(t, name), args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// Output runs a program, which must end within the given time, and returns what it wrote on both of
// its outputs. Any goroutine may call it; the test has asked for the program with
// [testenv.Program].
func Output(t testing.TB, within time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = killWait
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Process is a program that runs beside a test, and the lines that it has written on either of its
// outputs.
type Process struct {
	Log
	OS *os.Process // to send signals to

	ended chan struct{}
	mu    sync.Mutex
	part  bytes.Buffer // of a line
}

// Start starts a program and returns at once. The program is killed at the end of the test, or when
// the given time is over; if the test fails, its output is shown.
func Start(t testing.TB, within time.Duration, name string, args ...string) *Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	cmd := exec.CommandContext(ctx, testenv.Program(t, name), args...)
	cmd.WaitDelay = killWait
	p := &Process{ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	p.OS = cmd.Process
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // killed, as a rule, and only the output counts
		p.rest()
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		if t.Failed() {
			t.Logf("%s %s said:\n%s", name, strings.Join(args, " "), p)
		}
	})
	return p
}

// Says waits for a line with all of the words; false when the program has ended without one.
func (p *Process) Says(words ...string) bool {
	for {
		found, more := p.find(words)
		if len(found) > 0 {
			return true
		}
		select {
		case <-more:
		case <-p.ended:
			return len(p.Find(words...)) > 0
		}
	}
}

// Wait waits for the end of the program and returns its output.
func (p *Process) Wait() string {
	<-p.ended
	return p.String()
}

// Write takes output of the program and cuts it into lines.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part.Write(b)
	for {
		i := bytes.IndexByte(p.part.Bytes(), '\n')
		if i < 0 {
			return len(b), nil
		}
		p.Add(string(p.part.Next(i + 1)[:i]))
	}
}

// rest takes what follows the last newline.
func (p *Process) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.part.Len() > 0 {
		p.Add(p.part.String())
	}
}
