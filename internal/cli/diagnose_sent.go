package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/diagnose/casefile"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/host/sosreport"
)

// sentFlags are about evidence in files: read from another host, and written for another user.
type sentFlags struct {
	from []string
	save string
}

func (f *sentFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.from, "from", nil,
		"judge what is in `FILE` instead of this host: a capture, a sosreport, a copy of /proc and /sys, a "+
			"saved case; "+
			"given twice: what happened between two snapshots of one host; - is standard input")
	c.Flags().StringVar(&f.save, "save", "",
		"write all evidence of the verdict, with names and addresses replaced, to this new `FILE`; --from reads it")
}

// check refuses flags that contradict each other or the arguments, before anything is measured.
func (f *sentFlags) check(cmd *cobra.Command, args []string) error {
	// An empty name is an unset variable of a shell.
	if slices.Contains(f.from, "") {
		return usagef("--from: name a file")
	}
	if len(f.from) > 0 {
		if len(args) > 0 {
			return usagef("--from: leave out the TARGET; the file is judged instead")
		}
		for _, name := range []string{"duration", "key", "key-file", "connect-timeout", "parallel", "reverse"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s: --from only reads the file; no host is watched or loaded", name)
			}
		}
	}
	if f.save == "" {
		return nil
	}
	if f.save == "-" {
		return usagef("--save -: standard output carries the verdict; name a file")
	}
	if _, err := os.Lstat(f.save); err == nil {
		return fmt.Errorf("save case %s: %w", f.save, fs.ErrExist)
	}
	// A missing directory is reported now, not minutes later.
	if _, err := os.Stat(filepath.Dir(f.save)); err != nil {
		return fmt.Errorf("save case %s: %w", f.save, err)
	}
	return nil
}

// judge returns the verdict on the files.
func (f *sentFlags) judge(ctx context.Context, a *app) (*loop.Verdict, error) {
	v, err := loop.Sent(ctx, func(name string) (io.ReadCloser, error) { return a.openInput(name) }, f.from...)
	switch {
	case errors.Is(err, loop.ErrSent), errors.Is(err, snapshot.ErrNotTogether):
		return nil, usageError{err}
	case errors.Is(err, capture.ErrFormat), errors.Is(err, casefile.ErrFormat), errors.Is(err, sosreport.ErrFormat):
		if hintOf(err) == "" {
			err = flagError{err,
				"it reads files of `linerate inspect --capture`, `linerate diagnose --save` and sos, and " +
					"copies of /proc and /sys"}
		}
	}
	return v, err
}

// keep writes the case. Only its owner can read the file.
func (f *sentFlags) keep(c evidence.Case, p *progress.Line) error {
	if f.save == "" {
		return nil
	}
	file, err := durable.NewDraft(f.save, 0o600)
	if err == nil {
		defer file.Discard()
		if err = casefile.Write(file, version, c); err == nil {
			err = file.Publish(false)
		}
	}
	if err != nil {
		return fmt.Errorf("save case %s: %w", f.save, err)
	}
	p.Step("%s: look through it before you send it", f.save)
	return nil
}
