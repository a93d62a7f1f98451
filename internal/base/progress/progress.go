package progress

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Mode says how it is told what is going on.
type Mode int

// The modes.
const (
	Off   Mode = iota
	Lines      // every step a line of its own: pipes, logs
	// status lines too, each a line that begins with [StatusMark]: for programs that show progress
	// of their own
	All
	Live // steps are lines, and one status line rewrites itself: terminals
)

// StatusMark begins a status line where it cannot rewrite itself.
const StatusMark = "· "

// Line writes to standard error while a command works. Safe for concurrent use.
//
// Errors of writing are not looked at: progress that cannot be shown is no reason to stop a
// measurement or, worse, an undo.
type Line struct {
	mu     sync.Mutex
	w      io.Writer
	mode   Mode
	status bool // a status line stands on the terminal
}

// New gives a line that is shown on w.
func New(w io.Writer, mode Mode) *Line { return &Line{w: w, mode: mode} }

// Mode is how it is shown.
func (p *Line) Mode() Mode { return p.mode }

// Step says something that stays on the screen.
//
// The status line is taken away first and not put back: the next word about what is under way comes
// soon.
func (p *Line) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Off {
		return
	}
	p.clear()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Status says something that the next word replaces. Without a terminal it is not said at all: a
// log of plain lines would fill with what nobody wants to read twice.
func (p *Line) Status(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if p.mode == All {
		fmt.Fprintf(p.w, "%s%s\n", StatusMark, text)
	}
	if p.mode != Live {
		return
	}
	// A line that wraps cannot be rewritten by a carriage return. The width is asked each time,
	// since windows are resized.
	if f, ok := p.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			text = clip(text, width-1)
		}
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	p.status = true
}

// Done takes the status line away.
//
// It may be called several times; before a document is printed it keeps the last status from
// standing in front of it.
func (p *Line) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Line) clear() {
	if p.status {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.status = false
	}
}

// clip cuts a text to n columns, taking every rune for one column.
func clip(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
