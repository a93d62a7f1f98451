package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/loop"
)

// askedByAdvice returns the settings of a file of tuning advice as what a tune tries, and shows
// which lines it did not understand. A setting that cannot help on this kernel is tried nowhere,
// with the judgement of check-advice as the reason.
func (a *app) askedByAdvice(name string, p *progress.Line) ([]loop.Asked, error) {
	target, _, err := adviceTarget("", "")
	if err != nil {
		return nil, err
	}
	data, err := a.readText(name)
	if err != nil {
		return nil, fmt.Errorf("tune: read advice: %w", err)
	}
	file, err := advice.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("tune: read advice %s: %w", name, err)
	}
	source := filepath.Base(name)
	if name == "-" {
		source = "standard input"
	}
	asked := []loop.Asked{} // not nil: a file without settings asks for nothing
	var unread []string
	for _, j := range target.Judge(file) {
		if j.Knob == "" {
			unread = append(unread, strconv.Itoa(j.Line))
		} else {
			asked = append(asked, askedOf(j, source))
		}
	}
	if len(asked) == 0 {
		return nil, flagError{fmt.Errorf("--advice %s: no line of it is a setting that linerate reads", name),
			"linerate check-advice " + name + " lists its lines"}
	}
	if len(unread) > 0 {
		p.Step("lines of %s that were not understood: %s", source, strings.Join(unread, ", "))
	}
	return asked, nil
}

// askedOf returns a judged setting of a file as what a tune tries.
func askedOf(j advice.Judgement, source string) loop.Asked {
	// TuneD writes >2048 for "at least 2048" (tuned.conf(5)).
	value, atLeast := strings.CutPrefix(j.Value, ">")
	return loop.Asked{Knob: knob.ID(j.Knob), Value: knob.Value(strings.TrimSpace(value)), AtLeast: atLeast,
		Why: fmt.Sprintf("line %d of %s", j.Line, source), Refused: triedNowhere(j)}
}

// triedNowhere is why a setting cannot be worth a trial, as a clause; empty: a trial shows what it
// does.
func triedNowhere(j advice.Judgement) string {
	switch {
	case j.For != advice.Linux:
		return "a setting of " + string(j.For)
	case j.Verdict == advice.Ignored, j.Verdict == advice.Removed, j.Verdict == advice.Harmful:
		return fmt.Sprintf("%s: %s", j.Verdict, j.Why)
	}
	return ""
}
