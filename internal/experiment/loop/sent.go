package loop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/linerate/linerate/internal/diagnose/casefile"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/host/watch"
)

// ErrSent is in the errors of [Sent] for files that cannot be judged together.
var ErrSent = errors.New("cannot be judged together")

// Source opens a file by its name.
type Source func(name string) (io.ReadCloser, error)

// Sent judges a host from files: the case of an earlier verdict, a snapshot (a capture, a
// sosreport, a copy of /proc and /sys), or two snapshots of one host, between which it judges. A
// single snapshot has counters since boot. Files come from source, because one may be a pipe, whose
// writer a caller waits for; a directory is read from its name.
func Sent(ctx context.Context, source Source, names ...string) (*Verdict, error) {
	if len(names) < 1 || len(names) > 2 || len(names) == 2 && names[0] == names[1] {
		return nil, fmt.Errorf("%d files: %w: it takes one, or two of one host", len(names), ErrSent)
	}
	var moments []*snapshot.Moment
	for _, name := range names {
		m, c, err := open(ctx, source, name)
		switch {
		case err != nil:
			return nil, err
		case c != nil && len(names) > 1:
			return nil, fmt.Errorf("%s is a whole case: %w", name, ErrSent)
		case c != nil:
			v := &Verdict{Case: *c}
			v.judge()
			return v, nil
		}
		moments = append(moments, m)
	}
	host, span := moments[0].Host, (*watch.Span)(nil)
	sinceBoot := len(moments) == 1
	if sinceBoot {
		span = moments[0].SinceBoot()
	} else {
		_, later, between, err := snapshot.Between(moments[0], moments[1])
		if err != nil {
			return nil, err
		}
		host, span = later.Host, between
	}
	host.Warnings = append(host.Warnings, span.Warnings...)
	watched := evidence.Watched("near", host, span)
	watched.SinceBoot = sinceBoot
	v := &Verdict{Case: evidence.Case{Near: host, Watched: []evidence.Span{watched}}}
	v.judge()
	return v, nil
}

// open reads one file: a case, or a host at one moment.
func open(ctx context.Context, source Source, name string) (*snapshot.Moment, *evidence.Case, error) {
	if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
		f, err := snapshot.Open(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		m, err := f.Moment(ctx)
		return m, nil, err
	}
	in, err := source(name)
	if err != nil {
		return nil, nil, fmt.Errorf("read snapshot: %w", err)
	}
	defer in.Close() // opened for reading
	b := bufio.NewReader(in)
	if begin, _ := b.Peek(64); casefile.Looks(begin) { // an unreadable file fails below
		c, err := casefile.Read(b)
		return nil, c, err
	}
	f, err := snapshot.Read(ctx, name, b)
	if err != nil {
		return nil, nil, err
	}
	m, err := f.Moment(ctx)
	return m, nil, err
}
