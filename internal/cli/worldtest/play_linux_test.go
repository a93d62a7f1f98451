package worldtest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/report/reporttest"
)

// play runs linerate to its end as a process of its own, and returns its document. In this process
// it would take the other tests for its own work, and not see that they disturb it.
func play(t *testing.T, args ...string) (document []byte, status int) {
	t.Helper()
	// go test ends no children of a test that times out, and runs no cleanup: this one ends before,
	// by an interrupt, after which it takes its trials back.
	ctx := t.Context()
	if end, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)*9/10)
		defer cancel()
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self) // which is linerate by its name
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Args = append([]string{"linerate"}, args...)
	var out, errw bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errw
	var ended *exec.ExitError // its status says how sure the verdict is
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatalf("%v\n%s%s", err, &out, &errw)
	}
	if err := reporttest.Validate(out.Bytes()); err != nil {
		t.Fatalf("exit status %d, %v\n%s%s", cmd.ProcessState.ExitCode(), err, &out, &errw)
	}
	if errw.Len() > 0 {
		t.Logf("standard error: %s", &errw)
	}
	return out.Bytes(), cmd.ProcessState.ExitCode()
}

// patience is what a test leaves of the time of the whole binary when it repeats a play that
// linerate refused to judge: a play takes a minute or two, and several times as long on a busy
// machine.
const patience = 10 * time.Minute

// mayRepeat reports whether there is time for another play.
func mayRepeat(t *testing.T) bool {
	end, ok := t.Deadline()
	return !ok || time.Until(end) > patience
}
