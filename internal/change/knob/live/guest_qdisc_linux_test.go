package live_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/tc"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// What tc(8) prints of a discipline is what is read here: with its defaults, after we changed it,
// and after tc(8) did.
func TestGuestAgreesWithTc(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	name := guesttest.Plug(t, "e1000e")
	client(t, func(k *nl.Client) error { return k.SetUp(name) })
	b := live.New()
	write := func(attribute string, v knob.Value) {
		t.Helper()
		if err := b.Write(t.Context(), knob.ID("qdisc:"+name+"/"+attribute), v); err != nil {
			t.Error(err)
		}
	}
	compared := 0
	compare := func(kind string) {
		t.Helper()
		for parameter, theirs := range tcSays(t, name, kind) {
			ours, err := b.Read(t.Context(), knob.ID("qdisc:"+name+"/"+kind+"."+parameter))
			if err != nil || string(ours) != theirs {
				t.Errorf("%s.%s: %q here, %v; %q there", kind, parameter, ours, err, theirs)
			}
			compared++
		}
	}
	for _, d := range []struct {
		kind   string
		ours   map[string]knob.Value // in the words of the catalogue
		theirs string                // in those of tc(8)
	}{
		{"fq", map[string]knob.Value{
			"limit": "5000", "flow_limit": "50", "quantum": "3000", "initial_quantum": "6000", "maxrate": "8000000",
			"buckets": "512", "refill_delay": "20000",
			"low_rate_threshold": "1000000", "timer_slack": "20000", "horizon": "5000000",
		}, "limit 6000 flow_limit 60 maxrate 2mbit low_rate_threshold 800kbit horizon 3s horizon_drop"},
		{"fq_codel", map[string]knob.Value{
			"limit": "2000", "target": "10000", "interval": "200000", "ecn": "off", "quantum": "300",
			"drop_batch": "32", "memory_limit": "1048576", "ce_threshold": "3000",
		}, "limit 3000 target 2ms interval 20ms quantum 600 noecn memory_limit 2mb"},
		{"cake", map[string]knob.Value{
			"bandwidth": "100000000", "diffserv": "besteffort", "flowmode": "dual-srchost", "rtt": "50000",
			"nat": "off", "wash": "on", "ingress": "on",
			"ack-filter": "ack-filter", "split-gso": "off", "overhead": "18", "mpu": "64",
		}, "bandwidth 20mbit diffserv4 flows rtt 30ms nowash ack-filter-aggressive overhead 38 atm no-split-gso"},
		{"pfifo", map[string]knob.Value{"limit": "77"}, "limit 88"},
		{"bfifo", map[string]knob.Value{"limit": "77000"}, "limit 88000"},
	} {
		write("root", knob.Value(d.kind))
		compare(d.kind)
		for parameter, v := range d.ours {
			write(d.kind+"."+parameter, v)
		}
		compare(d.kind)
		program(t, "tc", append([]string{"qdisc", "replace", "dev", name, "root", d.kind},
			strings.Fields(d.theirs)...)...)
		compare(d.kind)
		// The next kind would lose what another program has set, which is refused.
		program(t, "tc", "qdisc", "delete", "dev", name, "root")
	}
	t.Logf("note: %d parameters agree with tc -j", compared)
	if compared < 90 {
		t.Errorf("only %d parameters compared", compared)
	}
}

// tcSays reads what tc(8) prints in JSON of the root of a link, in the words of the catalogue.
// Parameters for which the catalogue has no name are an error, and so is another kind than the one
// that should stand there.
func tcSays(t *testing.T, name, kind string) map[string]string {
	t.Helper()
	var roots []struct {
		Kind    string         `json:"kind"`
		Options map[string]any `json:"options"`
	}
	text := program(t, "tc", "-j", "qdisc", "show", "dev", name, "root")
	if err := json.Unmarshal([]byte(text), &roots); err != nil || len(roots) != 1 || roots[0].Kind != kind {
		t.Fatalf("root of %s: %v: %s; want one %s", name, err, text, kind)
	}
	parameters := make(map[string]bool)
	for _, p := range tc.Parameters(kind) {
		parameters[p] = true
	}
	said := make(map[string]string)
	for key, value := range roots[0].Options {
		parameter, text := catalogueWords(key, value)
		switch {
		case key == "raw":
		case key == "overhead" && roots[0].Options["raw"] == true:
			said[parameter] = "raw" // the number says nothing then
		case !parameters[parameter]:
			t.Errorf("%s: tc prints %s=%v, for which the catalogue has no name", kind, key, value)
		default:
			said[parameter] = text
		}
	}
	return said
}

// catalogueWords translates one member of what tc prints.
func catalogueWords(key string, value any) (parameter, text string) {
	parameter = strings.ReplaceAll(key, "split_gso", "split-gso")
	switch v := value.(type) {
	case nil: // a flag that is there
		text = "on"
	case bool:
		text = map[bool]string{true: "on", false: "off"}[v]
	case float64:
		switch key {
		case "maxrate", "low_rate_threshold", "bandwidth":
			v *= 8 // tc's JSON has bytes per second
		}
		text = fmt.Sprintf("%.0f", v)
	case string:
		text = v
		switch {
		case key == "bandwidth" && v == "unlimited":
			text = "0"
		case key == "ack-filter" && v == "disabled":
			text = "no-ack-filter"
		case key == "ack-filter" && v == "enabled":
			text = "ack-filter"
		case key == "ack-filter" && v == "aggressive":
			text = "ack-filter-aggressive"
		}
	}
	return parameter, text
}
