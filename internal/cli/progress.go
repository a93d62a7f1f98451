package cli

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/progress"
)

// newProgress decides by the flag and by what standard error is.
func (a *app) newProgress() (*progress.Line, error) {
	mode, err := a.progressMode()
	if err != nil {
		return nil, err
	}
	p := progress.New(raw(a.err), mode)
	if a.lines != nil {
		p.Hear(a.lines.event)
	}
	return p, nil
}

// progressMode reads --progress.
func (a *app) progressMode() (progress.Mode, error) {
	switch a.progress {
	case "off":
		return progress.Off, nil
	case "lines":
		return progress.Lines, nil
	case "all":
		return progress.All, nil
	case "auto", "":
		if terminal(a.err) && a.env("TERM") != "dumb" {
			return progress.Live, nil
		}
		return progress.Off, nil
	}
	return progress.Off, usageError{fmt.Errorf("--progress %q: not one of auto, lines, all, off", a.progress)}
}
