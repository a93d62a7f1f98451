package progress

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/linerate/linerate/internal/base/visible"
)

// Mode selects the form of the output.
type Mode int

// The modes.
const (
	Off   Mode = iota
	Lines      // each step on a separate line: pipes, logs
	// also status lines, each beginning with [StatusMark]: for programs that display progress
	// themselves
	All
	Live // steps are lines, and one status line is rewritten in place: terminals
)

// StatusMark begins a status line that cannot be rewritten in place.
const StatusMark = "· "

// Line writes progress to standard error while a command works. It is safe for concurrent use.
//
// It ignores write errors: a failure to show progress must not stop a measurement or, worse, an
// undo. What a terminal would obey is replaced in every text: names come from other hosts too.
type Line struct {
	mu     sync.Mutex
	w      io.Writer
	mode   Mode
	status bool // the terminal shows a status line
	hear   func(text string)
}

// New returns a Line that writes to w.
func New(w io.Writer, mode Mode) *Line { return &Line{w: w, mode: mode} }

// Mode returns the form of the output.
func (p *Line) Mode() Mode { return p.mode }

// Hear passes each later step and status on, in every mode. hear must not call the Line; nil ends
// it.
func (p *Line) Hear(hear func(text string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hear = hear
}

// Step prints a line that remains on the screen.
//
// It first removes the status line and does not restore it: the next status follows soon.
func (p *Line) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hear != nil {
		p.hear(fmt.Sprintf(format, args...))
	}
	if p.mode == Off {
		return
	}
	p.clear()
	fmt.Fprintln(p.w, visible.Text(fmt.Sprintf(format, args...)))
}

// Status shows a text that the next step or status replaces. In mode Lines it does nothing: a log
// of plain lines would fill with texts of no lasting use.
func (p *Line) Status(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hear != nil {
		p.hear(fmt.Sprintf(format, args...))
	}
	text := visible.Line(fmt.Sprintf(format, args...))
	if p.mode == All {
		fmt.Fprintf(p.w, "%s%s\n", StatusMark, text)
	}
	if p.mode != Live {
		return
	}
	// A line that wraps cannot be rewritten with a carriage return. The width is read each time,
	// since windows are resized.
	if f, ok := p.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			text = clip(text, width-1)
		}
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	p.status = true
}

// Done removes the status line.
//
// It may be called several times. A call before a document is printed keeps the last status from
// preceding it.
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

// clip truncates a text to n columns and counts every rune as one column.
func clip(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
