package report

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/linerate/linerate/internal/experiment/tune"
)

// SegmentsCSV writes every raw segment as one row of comma-separated values (RFC 4180), in the
// order of measuring, including discarded ones. The objective is in the unit that its heading
// names. Each guard-rail has a column, empty where a segment has no value for it. The possible loss
// has one if a segment counts that a disturbance can have slowed.
func SegmentsCSV(w io.Writer, d *TuneDocument) error {
	guards, doubtful := map[string]bool{}, false
	for _, s := range d.Segments {
		doubtful = doubtful || s.LossRatio > 0
		for name := range s.Guards {
			guards[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(guards))
	out := csv.NewWriter(w)
	head := []string{"phase", "trial", "pair", "arm", "side", "knob", "start_seconds", "duration_seconds", d.Unit,
		"discard", "label"}
	head = append(head, names...)
	if doubtful {
		head = append(head, "possible_loss_ratio")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, s := range d.Segments {
		side, name := d.about(s)
		row := []string{string(s.Phase), strconv.Itoa(s.Trial), strconv.Itoa(s.Pair), s.Arm, side, name,
			number(s.StartSeconds), number(s.DurationSeconds), number(s.Objective), s.Discard, s.Label}
		for _, guard := range names {
			if v, ok := s.Guards[guard]; ok {
				row = append(row, number(v))
			} else {
				row = append(row, "")
			}
		}
		if doubtful {
			row = append(row, number(s.LossRatio))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// about returns what a segment compares; empty for the pilot and the confirmation.
func (d *TuneDocument) about(s tune.Segment) (side, name string) {
	switch {
	case (s.Phase == tune.PhaseTrial || s.Phase == tune.PhaseLevels) && s.Trial >= 0 && s.Trial < len(d.Trials):
		return string(d.Trials[s.Trial].Side), string(d.Trials[s.Trial].Knob)
	case s.Phase == tune.PhaseAblation && s.Trial >= 0 && s.Trial < len(d.Ablation):
		return string(d.Ablation[s.Trial].Side), string(d.Ablation[s.Trial].Knob)
	}
	return "", ""
}
