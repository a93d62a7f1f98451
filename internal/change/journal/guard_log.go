package journal

import (
	"io"
	"time"
)

// guardLog writes the lines of a guard, in a goroutine of its own: the log is in the state
// directory, and its storage may hang. Lines that it cannot take are lost; they are also at the
// terminal and in the log of the system where they matter.
type guardLog struct {
	lines   chan string
	written chan struct{} // closed when all lines are written
}

// guardLogLines is how many lines wait for storage that is slow.
const guardLogLines = 256

// wordPatience is how long the end of a guard waits for its last words to be written.
const wordPatience = 250 * time.Millisecond

func newGuardLog(w io.Writer) *guardLog {
	l := &guardLog{lines: make(chan string, guardLogLines), written: make(chan struct{})}
	go func() {
		defer close(l.written)
		for line := range l.lines {
			// Best effort: a guard whose disk is full must still do its work.
			_, _ = io.WriteString(w, line)
		}
	}()
	return l
}

func (l *guardLog) write(line string) {
	select {
	case l.lines <- line:
	default:
	}
}

// close writes what is left, within wordPatience.
func (l *guardLog) close() {
	close(l.lines)
	awaitFor(l.written, wordPatience)
}
