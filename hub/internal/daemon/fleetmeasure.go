package daemon

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/hub/internal/fleet/desk"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/report"
)

// measureCommand is `linerate-hub fleet measure`.
func (a *app) measureCommand(f *runFlags) *cobra.Command {
	q := desk.Request{Do: desk.DoMeasure, Mesh: &desk.MeshRequest{}}
	var length time.Duration
	c := &cobra.Command{
		Use: "measure [-- SELECTION]", Short: "Make hosts measure each other, and name what the results accuse",
		Long: `measure gives each host some partners at random, pings all of these pairs, tests the suspects again,
and names the host or rack that the results accuse. With --loads it also sends at full speed between some pairs, as far
as the policy of each host allows: no host is in two load tests, and the uplink of a rack carries one at a time.

A host takes part if its node was started with --serve, and if linerate serve runs there with the key of the mesh.
The labels rack and site say which hosts share an uplink.`,
		Example: "  linerate-hub fleet measure\n  linerate-hub fleet measure --loads 2 --load-time 2s -- site:ams -host:db*",
		RunE: func(cmd *cobra.Command, words []string) error {
			q.Selection, q.Mesh.MS = strings.Join(words, " "), length.Milliseconds()
			var doc report.FleetMeasureDocument
			if err := a.call(cmd, f, q, &doc, nil); err != nil {
				return err
			}
			if err := a.print(&doc, func(w io.Writer) { writeMesh(w, &doc) }); err != nil {
				return err
			}
			if doc.Left > 0 || missing(&doc) > 0 {
				return errPartial
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.IntVar(&q.Mesh.Partners, "partners", 5, "partners of each host for pings, at most 64")
	flags.IntVar(&q.Mesh.Loads, "loads", 0, "partners of each host for load tests, at most 64")
	flags.DurationVar(&length, "load-time", 2*time.Second, "length of a load test, at most 30s")
	flags.IntVar(&q.Mesh.Uplink, "uplink", 1, "load tests at once between a rack and others")
	flags.IntVar(&q.Mesh.Site, "site", 1, "load tests at once between a site and others")
	flags.Uint64Var(&q.Mesh.Seed, "seed", 0, "of the plan; 0 draws one")
	return c
}

// missing returns how many hosts were in no test.
func missing(doc *report.FleetMeasureDocument) int {
	n := 0
	for _, h := range doc.Hosts {
		if h.Error != "" {
			n++
		}
	}
	return n
}

// pairsShown is how many pairs of racks the text names.
const pairsShown = 10

func writeMesh(w io.Writer, doc *report.FleetMeasureDocument) {
	bad, refused := 0, 0
	for _, r := range doc.Results {
		if r.Bad {
			bad++
		}
		if r.Error != "" {
			refused++
		}
	}
	fmt.Fprintf(w, "%d tests among %d hosts in %.1f s, %d bad\n", len(doc.Results)-refused, len(doc.Hosts)-missing(doc),
		doc.Seconds, bad)
	for _, c := range doc.Culprits {
		fmt.Fprintf(w, "accused: %s, with %d of %d tests across it bad\n", c.Text, c.Bad, c.Tests)
	}
	if len(doc.Culprits) == 0 {
		fmt.Fprintln(w, "the results accuse no host and no rack")
	}
	pairs := append([]report.FleetRackPair(nil), doc.Racks...)
	sorting.StableFunc(pairs, func(a, b report.FleetRackPair) int { return b.Bad*a.Tests - a.Bad*b.Tests })
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, p := range pairs {
		if p.Bad == 0 || i == pairsShown {
			break
		}
		if i == 0 {
			fmt.Fprintf(t, "\nrack\track\ttests\tbad\tworst round trip\tworst loss\n")
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\n", p.A, p.B, p.Tests, p.Bad, milliseconds(p.RTT), percentOf(p.Loss))
	}
	_ = t.Flush() // the writer below has the error
	for why, n := range notTested(doc) {
		fmt.Fprintf(w, "%d without a result: %s\n", n, why)
	}
	if doc.Left > 0 {
		fmt.Fprintf(w, "%d planned tests are missing: their hosts were busy\n", doc.Left)
	}
}

// notTested counts the reasons why hosts and tests have no result.
func notTested(doc *report.FleetMeasureDocument) func(func(string, int) bool) {
	count := make(map[string]int)
	for _, h := range doc.Hosts {
		if h.Error != "" {
			count["host "+h.Error]++
		}
	}
	for _, r := range doc.Results {
		if r.Error != "" {
			count["test: "+r.Error]++
		}
	}
	var all []string
	for why := range count {
		all = append(all, why)
	}
	sorting.Func(all, strings.Compare)
	return func(yield func(string, int) bool) {
		for _, why := range all[:min(len(all), pairsShown)] {
			if !yield(why, count[why]) {
				return
			}
		}
	}
}

func milliseconds(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", *v*1000)
}

func percentOf(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", *v*100)
}
