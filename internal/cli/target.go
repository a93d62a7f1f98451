package cli

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// targetFlags are the flags of every command that connects to another host.
type targetFlags struct {
	key     keyFlags
	timeout time.Duration
	trial   time.Duration     // not a flag: how long the far guard lets a trial last; 0: its default
	run     string            // not a flag: name of the run that changes belong to, for the far journal
	family  string            // not a flag: "4" or "6"; empty: any
	from    netip.Addr        // not a flag: the near address; the zero value: the route chooses
	tuning  *knob.Disturbance // not a flag: up to which class what ssh starts there may change that host; nil: nothing
}

func (t *targetFlags) add(c *cobra.Command) {
	t.key.add(c.Flags(), "key that 'linerate serve' printed on the other side")
	c.Flags().DurationVar(&t.timeout, "connect-timeout", 10*time.Second, "how long to wait for the other side")
}

func (a *app) connect(ctx context.Context, target string, t targetFlags, p *progress.Line) (*peer.Client, error) {
	return a.connectUntil(ctx, nil, target, t, p)
}

// connectUntil connects for tests that end early when curtail is closed.
func (a *app) connectUntil(ctx context.Context, curtail <-chan struct{}, target string, t targetFlags,
	p *progress.Line) (*peer.Client, error) {
	key, err := a.key(t.key)
	if err != nil {
		return nil, err
	}
	var command []string // of ssh; the default one changes nothing
	if t.tuning != nil {
		// No administrator has started that serve with the flag: the right to log in and run
		// commands there is the permission.
		flag := "--allow-tuning" // which older releases understand too
		if *t.tuning != knob.DefaultClass {
			flag += "=" + t.tuning.String()
		}
		command = append(slices.Clone(wire.DefaultSSHCommand), flag)
	}
	return peer.Connect(ctx, target, peer.ConnectOptions{
		Curtail: curtail, SSHCommand: command, Family: t.family, From: t.from,
		Key: key, Timeout: t.timeout, Version: version, TrialFor: t.trial, Run: t.run,
		Notify: func(message string) { p.Step("%s", message) },
	})
}

// loadFlags describe the traffic of a test.
type loadFlags struct {
	duration time.Duration
	interval time.Duration
	parallel int
	reverse  bool
	bidir    bool
}

// add registers the flags. Their names are those of iperf3 (--parallel, --reverse, --bidir), which
// most users know.
func (l *loadFlags) add(c *cobra.Command, duration time.Duration) {
	c.Flags().DurationVarP(&l.duration, "duration", "t", duration, "how long each test measures, after its warm-up")
	c.Flags().IntVarP(&l.parallel, "parallel", "P", 1, "connections at the same time")
	c.Flags().BoolVarP(&l.reverse, "reverse", "R", false, "the other side sends")
}

// addResults registers the flags of a command that prints the results themselves.
func (l *loadFlags) addResults(c *cobra.Command) {
	c.Flags().DurationVarP(&l.interval, "interval", "i", 0,
		"time between interim results (default 1s; n seconds in a test of n hours)")
	c.Flags().BoolVar(&l.bidir, "bidir", false, "both sides send at the same time")
}

// check refuses what no test can do, before anything is connected.
func (l *loadFlags) check() error {
	switch {
	case l.duration <= 0:
		return usagef("--duration %v: must be longer than 0s", l.duration)
	case l.reverse && l.bidir:
		return usagef("--reverse and --bidir: give one of them; --bidir sends both ways already")
	case l.parallel < 1 || l.parallel > traffic.MaxStreams:
		return usagef("--parallel %d: must be from 1 to %d", l.parallel, traffic.MaxStreams)
	}
	return nil
}

func (l *loadFlags) direction() traffic.Direction {
	switch {
	case l.bidir:
		return traffic.Bidir
	case l.reverse:
		return traffic.Down
	}
	return traffic.Up
}
