package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// progressMode says how a command tells what it is doing.
type progressMode int

const (
	progressOff   progressMode = iota
	progressLines              // every step a line of its own: pipes, logs
	progressAll                // status lines too, each a line that begins with statusMark: for programs that show progress of their own
	progressLive               // steps are lines, and one status line rewrites itself: terminals
)

// statusMark begins a status line where it cannot rewrite itself.
const statusMark = "· "

// progress writes to standard error while a command works. Safe for concurrent use.
//
// Errors of writing are not looked at: progress that cannot be shown is no reason to stop a measurement or, worse, an
// undo.
type progress struct {
	mu     sync.Mutex
	w      io.Writer
	mode   progressMode
	status bool // a status line stands on the terminal
}

// newProgress decides by the flag and by what standard error is.
func (a *app) newProgress() (*progress, error) {
	p := &progress{w: a.err}
	switch a.progress {
	case "off":
	case "lines":
		p.mode = progressLines
	case "all":
		p.mode = progressAll
	case "auto", "":
		if terminal(a.err) && a.env("TERM") != "dumb" {
			p.mode = progressLive
		}
	default:
		return nil, usageError{fmt.Errorf("--progress %q: not one of auto, lines, all, off", a.progress)}
	}
	return p, nil
}

// Step says something that stays on the screen.
//
// The status line is taken away first and not put back: the next word about what is under way comes soon.
func (p *progress) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == progressOff {
		return
	}
	p.clear()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Status says something that the next word replaces. Without a terminal it is not said at all: a log of plain lines would fill with
// what nobody wants to read twice.
func (p *progress) Status(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if p.mode == progressAll {
		fmt.Fprintf(p.w, "%s%s\n", statusMark, text)
	}
	if p.mode != progressLive {
		return
	}
	// A line that wraps cannot be rewritten by a carriage return. The width is asked each time, since windows are
	// resized.
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
// It may be called several times; before a document is printed it keeps the last status from standing in front of it.
func (p *progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
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
