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
	progressLive               // steps are lines, and one status line rewrites itself: terminals
)

// progress writes to standard error while a command works. Safe for concurrent use.
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
	case "auto", "":
		if terminal(a.err) && a.env("TERM") != "dumb" {
			p.mode = progressLive
		}
	default:
		return nil, usageError{fmt.Errorf("--progress %q: not one of auto, lines, off", a.progress)}
	}
	return p, nil
}

// Step says something that stays on the screen.
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
	if p.mode != progressLive {
		return
	}
	text := fmt.Sprintf(format, args...)
	if f, ok := p.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			text = clip(text, width-1)
		}
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	p.status = true
}

// Done takes the status line away.
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
