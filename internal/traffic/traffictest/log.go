package traffictest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Log is what a server or a program has written, sentence by sentence. The zero value is empty; any
// goroutine may call its methods.
type Log struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed with the next line; nil: nothing waits
}

// Add takes one more sentence; servers get it as their log.
func (l *Log) Add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
}

// Lines returns all sentences so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// String returns all sentences so far, one per line.
func (l *Log) String() string { return strings.Join(l.Lines(), "\n") }

// Find returns the sentences so far that have all of the words.
func (l *Log) Find(words ...string) []string {
	found, _ := l.find(words)
	return found
}

// Await waits until n sentences have all of the words, and returns all that do.
func (l *Log) Await(t testing.TB, n int, words ...string) []string {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		found, more := l.find(words)
		if len(found) >= n {
			return found
		}
		select {
		case <-more:
		case <-timeout.C:
			t.Fatalf("%d sentences with %q, want %d, in:\n%s", len(found), words, n, l)
		}
	}
}

// find returns the sentences with all of the words, and a channel that is closed when any line is
// added.
func (l *Log) find(words []string) (found []string, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return found, l.more
}
