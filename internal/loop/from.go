package loop

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/snapshot"
)

// From judges a host that cannot be reached, by what somebody sent of it. Two files are two moments of one host, in any order, and judged is what happened in
// between; one file is judged by all that was counted since the host started, which has faults of long ago in it as well as those of now. The error is
// snapshot.ErrNotTogether for two that have no difference.
func From(ctx context.Context, files ...*snapshot.File) (*Verdict, error) {
	if len(files) != 1 && len(files) != 2 {
		return nil, fmt.Errorf("judge %d snapshots: one, or two of the same host at different times", len(files))
	}
	var moments []*snapshot.Moment
	for _, f := range files {
		m, err := f.Moment(ctx)
		if err != nil {
			return nil, err
		}
		moments = append(moments, m)
	}
	// The later of two tells how the host is; what the earlier one had of settings and cards is history.
	last := moments[0]
	span := last.SinceBoot()
	if len(moments) == 2 {
		var err error
		if _, last, span, err = snapshot.Between(moments[0], moments[1]); err != nil {
			return nil, err
		}
	}
	last.Host.Warnings = append(last.Host.Warnings, span.Warnings...)
	watched := evidence.Watched("near", last.Host, span)
	watched.SinceBoot = len(moments) == 1
	v := &Verdict{Case: diagnose.Case{Near: last.Host, Watched: []evidence.Span{watched}}}
	v.Findings = diagnose.Examine(v.Case).Findings
	return v, nil
}
