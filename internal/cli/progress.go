package cli

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/progress"
)

// newProgress decides by the flag and by what standard error is.
func (a *app) newProgress() (*progress.Line, error) {
	mode := progress.Off
	switch a.progress {
	case "off":
	case "lines":
		mode = progress.Lines
	case "all":
		mode = progress.All
	case "auto", "":
		if terminal(a.err) && a.env("TERM") != "dumb" {
			mode = progress.Live
		}
	default:
		return nil, usageError{fmt.Errorf("--progress %q: not one of auto, lines, all, off", a.progress)}
	}
	p := progress.New(raw(a.err), mode)
	if a.lines != nil {
		p.Hear(a.lines.event)
	}
	return p, nil
}
