package cli

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/scratch"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/resolver/world"
)

// resolverLabCommand compares configurations of a real recursor in a closed world.
func (a *app) resolverLabCommand() *cobra.Command {
	o := world.Options{}
	var recursor string
	var noFresh, inside bool
	c := &cobra.Command{
		Use:         "lab",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Short:       "Compare what options of a real recursor do, in a closed world",
		Long: `Start a recursor of this machine (named, unbound or kresd) in a network namespace of its own, with a root, a
top-level domain and a leaf zone on loopback. One of the leaf's servers is slow and loses queries, one is
lame. The same load runs on one configuration after another: the default, each option of an old write-up
alone, and all together. The table shows answers per second, the recursor's own count of cache hits and
evictions, and how long a changed record stays hidden.

The times of the change are a thirtieth of real ones, in the zone and in the options; the table shows
them as they would be for a record with 300 s. Nothing outside the namespace changes.`,
		Example: "  linerate resolver lab\n  linerate resolver lab --recursor unbound --no-fresh",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Recursor = world.Recursor(recursor)
			if !slices.Contains(world.Recursors(), o.Recursor) {
				return usagef("--recursor %q: want bind, unbound or knot-resolver", recursor)
			}
			if o.Names < 1 || o.Names > 1_000_000 {
				return usagef("--name-count %d: want 1 to 1000000", o.Names)
			}
			if o.Duration <= 0 || o.Duration > time.Minute {
				return usagef("--duration %v: want up to 1m", o.Duration)
			}
			for _, name := range o.Only {
				if !slices.ContainsFunc(world.Variants(o.Recursor), func(v world.Variant) bool { return v.Name == name }) {
					return usagef("--only %q: not a name in the table of %s", name, o.Recursor)
				}
			}
			if _, err := o.Recursor.Find(); err != nil {
				return flagError{err, "install it: the Debian packages are bind9, unbound and knot-resolver"}
			}
			if !inside {
				return a.enterWorld(cmd)
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			if err := world.Furnish(); err != nil {
				return err
			}
			dir, err := scratch.New("resolver")
			if err != nil {
				return err
			}
			defer dir.Close() // configurations of the world alone
			o.Dir = dir.Path
			o.Fresh = !noFresh
			version, err := o.Recursor.Version(cmd.Context())
			if err != nil {
				return err
			}
			rows, err := world.Compare(cmd.Context(), o, func(r world.Row) {
				p.Step("%s: %s answers/s", r.Name, unit.FormatCount(r.AnswersPerSecond))
			})
			p.Done()
			if err != nil {
				return err
			}
			doc := report.NewResolverLab(a.envelope(""), o.Recursor, version, o.Names, rows)
			return a.print(doc, func(s text.Style) error { return text.ResolverLab(a.out, doc, s) })
		},
	}
	f := c.Flags()
	f.StringVar(&recursor, "recursor", "bind", "bind, unbound or knot-resolver")
	f.IntVar(&o.Names, "name-count", 20_000, "names that the load asks for")
	f.DurationVar(&o.Duration, "duration", 3*time.Second, "length of the load on each configuration")
	f.StringArrayVar(&o.Only, "only", nil, "compare this configuration, by its name in the table; repeatable")
	f.BoolVar(&noFresh, "no-fresh", false, "do not measure how long a change stays hidden, which takes up to 12s each")
	f.BoolVar(&inside, "inside", false, "run in the present namespace, which must be new")
	_ = f.MarkHidden("inside") // it exists
	return c
}

// enterWorld runs the same command line again in a new namespace.
func (a *app) enterWorld(cmd *cobra.Command) error {
	status, err := world.Enter(cmd.Context(), append(append([]string{}, a.args...), "--inside"), raw(a.out), raw(a.err))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return flagError{err, "run it as root, or allow user namespaces"}
	case err == nil && status != 0:
		return statusError{status: status} // it has printed the reason
	}
	return err
}
