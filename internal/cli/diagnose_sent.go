package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/diagnose/casefile"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/host/sosreport"
)

// sentFlags are about cases in files: what somebody sent, and what is kept to be sent.
type sentFlags struct {
	from []string
	save string
}

func (f *sentFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.from, "from", nil,
		"judge what is in `FILE` instead of this host: a capture, a sosreport, a copy of /proc and /sys, a saved case; "+
			"twice: what happened between two snapshots of one host; - is standard input")
	c.Flags().StringVar(&f.save, "save", "",
		"write all that the verdict rests on, scrubbed, into this new `FILE`; --from reads it")
}

// check refuses what cannot be meant, before anything is measured.
func (f *sentFlags) check(cmd *cobra.Command, args []string) error {
	// An empty name is a shell's variable that was not set.
	if slices.Contains(f.from, "") || cmd.Flags().Changed("save") && f.save == "" {
		return usagef("--from and --save: name a file")
	}
	if len(f.from) > 0 {
		if len(args) > 0 {
			return usagef("--from: a TARGET has no place beside what was sent")
		}
		for _, name := range []string{"duration", "key", "connect-timeout", "parallel", "reverse"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s: what was sent is read, nothing is watched or loaded", name)
			}
		}
	}
	if f.save == "" {
		return nil
	}
	if f.save == "-" {
		return usagef("--save -: standard output has the verdict; name a file")
	}
	if _, err := os.Lstat(f.save); err == nil {
		return fmt.Errorf("save case %s: %w", f.save, fs.ErrExist)
	}
	// Minutes later is a bad time to find that there is no such place.
	if _, err := os.Stat(filepath.Dir(f.save)); err != nil {
		return fmt.Errorf("save case %s: %w", f.save, err)
	}
	return nil
}

// judge makes the verdict on what was sent.
func (f *sentFlags) judge(ctx context.Context, a *app) (*loop.Verdict, error) {
	v, err := loop.Sent(ctx, a.in, f.from...)
	switch {
	case errors.Is(err, loop.ErrSent), errors.Is(err, snapshot.ErrNotTogether):
		return nil, usageError{err}
	case errors.Is(err, capture.ErrFormat), errors.Is(err, casefile.ErrFormat), errors.Is(err, sosreport.ErrFormat):
		if hintOf(err) == "" {
			err = flagError{err,
				"it reads what `linerate inspect --capture`, `linerate diagnose --save` and sos make, and copies of /proc and /sys"}
		}
	}
	return v, err
}

// keep writes the case beside its place and moves it there, so that a full disk leaves no half of
// one, and nothing that is there is lost. It is for its owner alone until they send it.
func (f *sentFlags) keep(c evidence.Case, p *progress.Line) (err error) {
	if f.save == "" {
		return nil
	}
	beside, err := os.CreateTemp(filepath.Dir(f.save), ".linerate-case-*") // mode 0600
	if err != nil {
		return fmt.Errorf("save case: %w", err)
	}
	defer os.Remove(beside.Name()) // the other name stays
	err = casefile.Write(beside, version, c)
	if err = errors.Join(err, beside.Close()); err != nil {
		return fmt.Errorf("save case: %w", err)
	}
	// A link cannot replace what somebody made meanwhile; a renaming would.
	if err = os.Link(beside.Name(), f.save); err != nil {
		return fmt.Errorf("save case %s: %w", f.save, err)
	}
	p.Step("%s: look through it before you send it", f.save)
	return nil
}
