package goal

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Objective
	}{
		{"throughput", Objective{Goal: Throughput}},
		{"  Latency ", Objective{Goal: Latency}},
		{"throughput where p99_rtt<5ms and cpu<80% and retransmits<1%", Objective{Goal: Throughput, Bounds: []Bound{
			{Term: "p99_rtt", Op: Less, Value: 0.005, Text: "5ms", At: 17},
			{Term: "cpu", Op: Less, Value: 0.8, Text: "80%", At: 33},
			{Term: "retransmits", Op: Less, Value: 0.01, Text: "1%", At: 45},
		}}},
		{"packets where loss <= 0 %",
			Objective{Goal: Packets, Bounds: []Bound{{Term: "loss", Op: AtMost, Text: "0 %", At: 14}}}},
		{"latency WITH throughput ≥ 940 Mb/s AND drops<100 per gigabyte", Objective{Goal: Latency, Bounds: []Bound{
			{Term: "throughput", Op: AtLeast, Value: 940e6, Text: "940 Mb/s", At: 13},
			{Term: "drops", Op: Less, Value: 100, Text: "100 per gigabyte", At: 41},
		}}},
		{"throughput where cpu_per_gigabyte<2s/GB and transactions>20k/s", Objective{Goal: Throughput, Bounds: []Bound{
			{Term: "cpu_per_gigabyte", Op: Less, Value: 2, Text: "2s/GB", At: 17},
			{Term: "transactions", Op: More, Value: 20e3, Text: "20k/s", At: 44},
		}}},
	} {
		got, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		again, err := Parse(got.String())
		if err != nil || again.String() != got.String() {
			t.Errorf("%q written as %q is read as %q, %v", c.text, got, again, err)
		}
	}
}

// TestParsePoints checks that every mistake gets its place and what to do about it.
func TestParsePoints(t *testing.T) {
	for _, c := range []struct{ text, place, problem, hint string }{
		{"", "at character 1:", "no goal", "throughput, latency, packets"},
		{"beauty", `at character 1, "beauty"`, "not a goal", "the goals are"},
		{"throughptu", `"throughptu"`, "not a goal", "the goals are"},
		{"throughpt", `"throughpt"`, "not a goal", "did you mean throughput?"},
		{"throughput and latency", `at character 16, "latency"`, "a second goal", "p99_rtt<5ms"},
		{"throughput, latency", `at character 13, "latency"`, "a second goal", ""},
		{"throughput latency", `at character 12, "latency"`, "a second goal", ""},
		{"throughput when cpu<1%", `at character 12, "when"`, `want "where"`, ""},
		{"throughput where", "at character 17:", "no bound", ""},
		{"throughput where p99_rt<5ms", `at character 18, "p99_rt"`, "not a quantity", "did you mean p99_rtt?"},
		{"throughput where jitter<5ms", `"jitter"`, "not a quantity", "the terms are p50_rtt"},
		{"throughput where cpu", "at character 21:", "want <, <=, > or >= behind cpu", "'cpu<80%'"},
		{"throughput where cpu=80%", `at character 21, "=80%"`, "want <", ""},
		{"throughput where cpu<", "at character 22:", "no value for cpu", ""},
		{"throughput where cpu<80", `at character 22, "80"`, "not a value of cpu", "write it like 80%"},
		{"throughput where p99_rtt<5", `at character 26, "5"`, "not a value of p99_rtt", "write it like 5ms"},
		{"throughput where p99_rtt<5ms and", "at character 33:", "no bound", ""},
		{"throughput where p99_rtt<5ms and and", `"and"`, "not a quantity", ""},
		{"throughput where cpu<180%", `"180%"`, "cpu is never above 100 %", ""},
		{"throughput where p99_rtt<-5ms", `"-5ms"`, "never negative", ""},
		{"throughput where p99_rtt<=0s", `"0s"`, "always more than zero", ""},
		{"throughput where cpu<=0%", `"0%"`, "always more than zero", ""},
		{"packets where loss<0%", `"0%"`, "loss is never below zero", "loss<=0%"},
		{"throughput where drops < 0/GB", `"0/GB"`, "drops is never below zero", "drops<=0/GB"},
		{"latency where throughput>0b/s", `"0b/s"`, "has no effect", ""},
		{"throughput where p99_rtt<1ms and p99_rtt>5ms", `at character 34, "p99_rtt>5ms"`,
			"contradicts p99_rtt<1ms: no value is both", "give one of them"},
		{"throughput where p99_rtt>5ms", `at character 18, "p99_rtt>5ms"`, "asks for a worse p99_rtt",
			"p99_rtt<5ms"},
		{"throughput where throughput<1Gb/s", `"throughput<1Gb/s"`, "contradicts the goal", "leave it out"},
		{"latency where latency > 3ms", `"latency > 3ms"`, "contradicts the goal", ""},
		{"latency where throughput<1Gb/s", `"throughput<1Gb/s"`, "asks for a worse throughput",
			"throughput>1Gb/s"},
		{"packets where packets<10k/s", `"packets<10k/s"`, "contradicts the goal", ""},
	} {
		_, err := Parse(c.text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v, want an *Error", c.text, err)
			continue
		}
		if !strings.Contains(e.Error(), c.place) || !strings.Contains(e.Error(), c.problem) ||
			!strings.Contains(e.Hint(), c.hint) {
			t.Errorf("%q: %v; hint %q\nwant place %s, problem %q, hint %q", c.text, e, e.Hint(), c.place,
				c.problem, c.hint)
		}
	}
	if _, err := Parse(strings.Repeat("x", 2000)); err == nil || len(err.Error()) > 300 {
		t.Errorf("a long text: %v", err)
	}
}

func TestNone(t *testing.T) {
	for _, text := range []string{"packets where loss<=0%", "throughput where retransmits<=0% and drops<=0/GB"} {
		if o, err := Parse(text); err != nil || o.Bounds[0].Value != 0 {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
}

func TestLimits(t *testing.T) {
	o, err := Parse("latency where p99_rtt<5ms and throughput>1Gb/s and p99_rtt<3ms and throughput>900Mb/s")
	if err != nil {
		t.Fatal(err)
	}
	want := []Limit{{Guard: GuardP99RTT, Value: 0.003}, {Guard: GuardThroughput, Value: 1e9, AtLeast: true}}
	if diff := cmp.Diff(want, o.Limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if !o.Asks(GuardThroughput) || o.Asks(GuardDrops) {
		t.Error("asked for throughput and not for drops")
	}
}

func TestUnreachable(t *testing.T) {
	path := Path{IdleRTTSeconds: 0.020, CeilingBitsPerSec: 1e9, CeilingWhy: "eth0 of the far host is a 1 Gb/s link"}
	for _, c := range []struct{ text, want string }{
		{"throughput where p99_rtt<5ms",
			"objective p99_rtt<5ms: cannot be reached on this path: its idle round trip is 20.0 ms"},
		{"throughput where p99_rtt<50ms and throughput>2Gb/s",
			"objective throughput>2Gb/s: cannot be reached on this path: eth0 of the far host is a 1 Gb/s link"},
		{"latency where transactions>100/s", "a round trip of 20.0 ms allows 50 transactions/s"},
		{"latency where latency<1ms", "its idle round trip is 20.0 ms"},
		{"throughput where p99_rtt<50ms and throughput>900Mb/s and cpu<10%", ""},
	} {
		o, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		err = o.Unreachable(path)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if err := o.Unreachable(Path{}); err != nil {
			t.Errorf("%q: nothing is known of the path, yet %v", c.text, err)
		}
	}
}

// TestTermsAreWhole compares the list for users with the table that the parser uses.
func TestTermsAreWhole(t *testing.T) {
	if len(termOrder) != len(terms) || len(Terms()) != len(terms) {
		t.Errorf("%d terms, %d in the list", len(terms), len(termOrder))
	}
	for name, d := range terms {
		if !slices.Contains(termOrder[:], name) || d.guard == "" || d.what == "" {
			t.Errorf("%s: %+v", name, d)
		}
		if v, err := d.written.parse(d.written.example); err != nil || v <= 0 || math.IsInf(v, 0) {
			t.Errorf("the example %q of %s is read as %v, %v", d.written.example, name, v, err)
		}
	}
}

// FuzzParse checks that every text is parsed or rejected with a place inside it, and that the
// parsed objective prints as one that parses again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		example, "latency", "packets where loss<=0%", "throughput where throughput≥1Gb/s", "throughput and latency",
		"throughput where p99_rtt<1ms and p99_rtt>5ms",
		"throughput where cpu<", "latency where drops<1/GB and drops<2 per gigabyte", "\x00",
		"throughput where rtt<1h30m", "päckets",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.At < 0 || e.Len < 0 || e.At+e.Len > len(e.Text) || e.Problem == "" ||
				strings.ContainsAny(e.Error(), "\n\r") {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		again, err := Parse(o.String())
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, o, err)
		}
		if diff := cmp.Diff(o.Limits(), again.Limits()); diff != "" || o.Goal != again.Goal {
			t.Fatalf("%q is written as %q:\n%s", text, o, diff)
		}
		for _, l := range o.Limits() {
			if l.Guard == "" || math.IsNaN(l.Value) || math.IsInf(l.Value, 0) || l.Value < 0 {
				t.Fatalf("%q: limit %+v", text, l)
			}
		}
	})
}
