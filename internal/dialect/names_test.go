package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAccept(t *testing.T) {
	got, err := ParseAccept("iperf3, iperf2=5002,ttcp=5002,nuttcp,sockperf,stamp=0")
	want := []Acceptance{{"iperf3", 5201}, {"iperf2", 5002}, {"ttcp", 5002}, {"nuttcp", 5000}, {"sockperf", 11111},
		{"stamp", 0}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for list, reason := range map[string]string{
		"":                      "no such dialect",
		"iperf9":                "iperf3, iperf2, ttcp, nuttcp, sockperf, stamp",
		"iperf3,":               "no such dialect",
		"iperf3=":               "is not a number",
		"iperf3=65536":          "is not a number",
		"iperf3=-1":             "is not a number",
		"iperf2,iperf2=7":       "named twice",
		"iperf3=5001,iperf2":    "needs a port of its own",
		"nuttcp=11111,sockperf": "needs a port of its own",
	} {
		if _, err := ParseAccept(list); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestSplitTarget(t *testing.T) {
	for _, c := range []struct {
		in, host string
		port     int
	}{
		{"h", "h", 9}, {"h:5", "h", 5}, {"192.0.2.1", "192.0.2.1", 9}, {"2001:db8::1", "2001:db8::1", 9},
		{"[2001:db8::1]:5", "2001:db8::1", 5},
		{"[2001:db8::1]", "2001:db8::1", 9}, {"", "", 0}, {":5", "", 0}, {"h:0", "", 0}, {"h:x", "", 0},
		{"a:b:c", "", 0}, {"h:70000", "", 0},
	} {
		h, p, err := splitTarget(c.in, 9)
		if h != c.host || p != c.port || (err != nil) != (c.port == 0) {
			t.Errorf("%q: %q, %d, %v", c.in, h, p, err)
		}
	}
}

func FuzzParseAccept(f *testing.F) {
	f.Add("iperf3,iperf2=5001")
	f.Add("ttcp=0,nuttcp=65535")
	f.Fuzz(func(t *testing.T, list string) {
		accept, err := ParseAccept(list)
		if err == nil && (len(accept) == 0 || len(accept) > len(dialects)) {
			t.Errorf("%q: %v", list, accept)
		}
	})
}

func FuzzSplitTarget(f *testing.F) {
	f.Add("[::1]:5")
	f.Add("host")
	f.Fuzz(func(t *testing.T, target string) {
		h, p, err := splitTarget(target, 7)
		if err == nil && (h == "" || p < 1 || p > 65535) {
			t.Errorf("%q: %q, %d", target, h, p)
		}
	})
}

// TestTableIsComplete checks that every dialect can be measured, and served in exactly one way.
func TestTableIsComplete(t *testing.T) {
	for _, d := range dialects {
		if d.port == 0 || d.run == nil || (d.listen == nil) == (d.join == nil) || len(Suite(d.name)) == 0 {
			t.Errorf("%s: incomplete entry %+v", d.name, d)
		}
	}
	if s := Suite("iperf9"); s != nil {
		t.Errorf("the suite of an unknown dialect is %v", s)
	}
}
