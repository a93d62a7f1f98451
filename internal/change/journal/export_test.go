package journal

import "time"

// WaitForSystemd sets how long a guard of this process waits for systemd.
func WaitForSystemd(d time.Duration) { systemdPatience = d }

// ReportTo makes a journal of a test send its records to a guard, as one that started the guard
// itself does.
func (j *Journal) ReportTo(life lifeline) {
	j.guard = &Guard{mode: j.options.Mode, life: life, exited: make(chan struct{}), end: func() {}}
}

// Describe sets how the journal records a guard.
func (g *Guard) Describe(is Guardian) { g.is = &is }

// HearProbe waits for the answers of a process that tries the storage.
var HearProbe = hearProbe

// AwaitFor waits for an answer.
func AwaitFor(answer <-chan int, d time.Duration) (int, bool) { return awaitFor(answer, d) }

// AwaitSteps is AwaitFor with a clock of the test.
func AwaitSteps(answer <-chan int, steps <-chan time.Time, n int) (int, bool) {
	return awaitSteps(answer, steps, n)
}

// SendTo sends a message to a guard behind a pipe.
func SendTo(life lifeline, message string) error { return (&Guard{life: life}).send(message) }

// Handshake waits for a guard to answer.
var Handshake = handshake
