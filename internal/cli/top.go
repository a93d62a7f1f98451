package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/rows"
	"github.com/linerate/linerate/internal/top"
)

func (a *app) topCommand() *cobra.Command {
	var f top.Asked
	c := &cobra.Command{
		Use:         "top",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Short:       "Live view of this host: interfaces, drops by place, processors, retransmits, findings",
		Long: `Show what this host carries, second by second: interfaces with rates, packets and drops by
place, processors, interrupts and retransmits. It also shows the processes and connections that
send, what limits the host, and the latest changes. top sends nothing and changes nothing. ?
explains keys and columns, q quits.

--once and --count print tables instead, --json one document with as many readings. --json-lines
prints each reading when it is made, until Ctrl-C or --count; --format prints the interfaces for a
spreadsheet or a database. Without a terminal top prints one table. Ordinary users see the same,
except what the kernel hides from them.`,
		Example: "  linerate top\n  linerate top --interval 2s --sort drops\n  linerate top --once --filter eth\n" +
			"  linerate top --json | jq '.readings[0].interfaces[] | {name, receive_bits_per_second}'\n" +
			"  linerate top --json --interface eth0 --count 60",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Counted = cmd.Flags().Changed("count")
			f.Endless = a.lines != nil && !f.Once && !f.Counted
			if err := f.Check(); err != nil {
				return usageError{err}
			}
			return a.top(cmd.Context(), f)
		},
	}
	c.Flags().DurationVar(&f.Interval, "interval", time.Second, "time between readings, from 100ms to 1m")
	c.Flags().BoolVar(&f.Once, "once", false, "print one table after one interval")
	c.Flags().IntVar(&f.Count, "count", 0,
		"print this many tables, one each interval; with --json this many readings in one document")
	c.Flags().StringVar(&f.Sort, "sort", "", "sort interfaces by one of "+top.SortNames()+" (default traffic)")
	c.Flags().StringVar(&f.Filter, "filter", "", "only interfaces with this text in name, driver, kind or parent")
	c.Flags().StringVar(&f.Interface, "interface", "", "only this interface, with all its details")
	return a.forScripts(a.streaming(c), true)
}

// top shows a screen on a terminal, and otherwise prints tables or a document.
func (a *app) top(ctx context.Context, f top.Asked) error {
	f.Host, f.ASCII = a.envelope("").Host.Name, top.ASCII(a.env)
	f.Interface = ownName(f.Interface)
	source := top.Source{Interval: f.Interval}
	source.StateDir, source.NoState = a.stateDir()
	source.Elsewhere = a.rootsChanges
	screen := terminal(a.out) && a.env("TERM") != "dumb" && a.env("TERM") != ""
	if in, ok := a.in.(*os.File); screen && ok && terminal(in) && !a.json && a.format == "" && !f.Once && f.Count == 0 {
		return top.Run(ctx, top.Terminal{In: in, Out: raw(a.out), Environment: os.Environ(), Colour: a.colour(a.out)},
			f.Begin, source)
	}
	if !a.json && a.format == "" && a.output == "" && !f.Once && f.Count == 0 {
		fmt.Fprintln(a.err, "linerate: this terminal cannot show a screen: printing one table, as with --once")
	}
	f.Width = a.style().Width
	got, err := top.Collect(ctx, f, source, func(r top.Reading) error {
		switch {
		case a.lines != nil:
			return a.lines.document(report.LineReading, top.NewDocument(a.envelope(""), []top.Reading{r}, nil, nil, nil))
		case a.json, a.format != "":
			return nil
		}
		return f.Table(a.out, r)
	})
	if errors.Is(err, top.ErrNoInterface) {
		return flagError{err, "linerate top --once shows the interfaces of this host"}
	}
	if len(got.Readings) == 0 {
		return err
	}
	// Readings before an interruption are not lost.
	doc := got.Document(a.envelope(""))
	switch {
	case a.format != "":
		return errors.Join(rows.Write(a.out, rows.Format(a.format), doc.Rows(a.format == string(rows.Prometheus))), err)
	case a.lines != nil:
		return errors.Join(a.lines.document(report.LineResult, doc), err)
	case !a.json:
		return errors.Join(f.Ending(a.out, got), err)
	}
	return errors.Join(report.Encode(a.out, doc), err)
}
