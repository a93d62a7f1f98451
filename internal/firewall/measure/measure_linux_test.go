package measure

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/cost"
)

// needPrograms asks for what all cases need.
func needPrograms(t testing.TB) {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	for _, name := range []string{"nft", "iptables-legacy-restore", "iptables-nft-restore"} {
		testenv.Program(t, name)
	}
}

// spaces counts the network namespaces that this process holds open.
func spaces(t testing.TB) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && len(to) > 4 && to[:4] == "net:" {
			n++
		}
	}
	return n
}

// TestCalibrate goes the whole way, with few datagrams. How long they took is not judged; what is:
// every case meets its rules as the model says, the cases determine every price but that of the
// log, and nothing is left.
func TestCalibrate(t *testing.T) {
	needPrograms(t)
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	cases := probes()
	results, err := Run(context.Background(), cases, Options{Least: 2, Read: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Batches != 2 || r.Nanoseconds <= 0 {
			t.Errorf("%s: %v ns, %d batches", r.Name, r.Nanoseconds, r.Batches)
		}
		if len(cases[i].Rules) > 0 && len(r.Rules) != 1 {
			t.Errorf("%s: %d rulesets", r.Name, len(r.Rules))
		}
		for _, rules := range r.Rules {
			for _, h := range cost.Of(rules, cost.Measured()).Hooks {
				if h.Counted && h.Packets != 2*(batch+warming) {
					t.Errorf("%s, %s: the model says that %v datagrams came, of %d", r.Name, h.Name, h.Packets, 2*(batch+warming))
				}
			}
		}
	}
	// Other prices, and the times that they would make: the cases lead back to them.
	want := cost.Measured()
	for k, price := range want.All() {
		*price *= 0.5 + 0.1*float64(k*k%11)
	}
	base := Nothing(results)
	for i := range results {
		if len(cases[i].Rules) > 0 {
			results[i].Nanoseconds = base + results[i].Predicted(want)
		}
	}
	got, middle := pricesOf(results)
	want.Log = got.Log
	for k, price := range got.All() {
		if w := *want.All()[k]; math.Abs(*price-w) > 0.05*w+0.2 {
			t.Errorf("price %d: %v, want %v", k, *price, w)
		}
	}
	if middle > 0.01 {
		t.Errorf("median error %v of times without one", middle)
	}
	if n := spaces(t); n != 0 {
		t.Errorf("%d network namespaces are still open", n)
	}
	if after, err := os.Readlink("/proc/self/ns/net"); err != nil || after != before {
		t.Errorf("the process is in %s, and was in %s: %v", after, before, err)
	}
}

// TestRunEnds: an end of the context, and rules that do not load, leave nothing either.
func TestRunEnds(t *testing.T) {
	needPrograms(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, []Case{{Name: nothing}}, Options{Least: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ended: %v", err)
	}
	if _, err := Run(context.Background(), []Case{{Name: nothing}, {Name: "bad", Rules: table("ip", "", "no rule")}},
		Options{Least: 1}); err == nil {
		t.Error("rules that are none were loaded")
	}
	if n := spaces(t); n != 0 {
		t.Errorf("%d network namespaces are still open", n)
	}
}

// TestUnseenRules: the counters of rulesets that no calibration knows lead the model to the
// datagrams that were sent. What it says of the time is in the benchmark.
func TestUnseenRules(t *testing.T) {
	needPrograms(t)
	testenv.Need(t, testenv.Long)
	results, err := Run(context.Background(), unseen(), Options{Least: 1, Read: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) < 60 {
		t.Errorf("%d rulesets, want 60", len(results))
	}
	for _, r := range results {
		for _, rules := range r.Rules {
			for _, h := range cost.Of(rules, cost.Measured()).Hooks {
				if h.Counted && h.Packets != batch+warming {
					t.Errorf("%s, %s: the model says that %v datagrams came, of %d", r.Name, h.Name, h.Packets, batch+warming)
				}
			}
		}
	}
}

// BenchmarkModel calibrates, and then compares the model with what rulesets cost that the
// calibration did not see. It runs once: go test -bench Model -benchtime 1x -v prints the table of
// docs/evidence/firewall.md.
func BenchmarkModel(b *testing.B) {
	needPrograms(b)
	for b.Loop() {
		c, err := Calibrate(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("calibrated with %d cases, median error %.1f %%: %+v", c.Cases, 100*c.Error, c.Prices)
		cases := unseen()
		for range 4 {
			cases = append(cases, Case{Name: nothing})
		}
		results, err := Run(context.Background(), cases, Options{Span: 3 * calibration, Least: fewest, Read: true})
		if err != nil {
			b.Fatal(err)
		}
		base := Nothing(results)
		var errs, built []float64
		for i, r := range results[:len(results)-4] {
			added, says, says2 := r.Nanoseconds-base, r.Predicted(c.Prices), r.Predicted(cost.Measured())
			errs, built = append(errs, math.Abs(says/added-1)), append(built, math.Abs(says2/added-1))
			b.Logf("| %s | %.0f | %.0f | %+.0f %% |", cases[i].Name, added, says, 100*(says/added-1))
		}
		slices.Sort(errs)
		slices.Sort(built)
		b.ReportMetric(100*errs[len(errs)/2], "%median")
		b.ReportMetric(100*errs[len(errs)*9/10], "%p90")
		b.ReportMetric(100*built[len(built)/2], "%built-in")
		b.ReportMetric(float64(len(errs)), "rulesets")
	}
}
