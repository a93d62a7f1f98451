package loop

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/owner"
	"github.com/linerate/linerate/internal/traffic"
)

// fakeHost is a host with values that counts what is written.
type fakeHost struct {
	fakeFar
	values map[knob.ID]knob.Value
	writes int
	denied map[knob.ID]error // what Foresee answers
}

func (h *fakeHost) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	if v, ok := h.values[id]; ok {
		return v, nil
	}
	return "", fmt.Errorf("read %s: %w", id, fs.ErrNotExist)
}

func (h *fakeHost) Foresee(_ context.Context, s knob.Setting) error { return h.denied[s.Knob] }

func (h *fakeHost) Apply(context.Context, string, ...knob.Setting) ([]string, error) {
	h.writes++
	return []string{"1"}, nil
}
func (h *fakeHost) Undo(context.Context, ...string) error   { return nil }
func (h *fakeHost) Commit(context.Context, ...string) error { return nil }

func definitions(t *testing.T, ids ...knob.ID) []knob.Definition {
	t.Helper()
	var all []knob.Definition
	for _, id := range ids {
		d, ok := knob.Catalogue().Lookup(id)
		if !ok {
			t.Fatalf("%s is not in the catalogue", id)
		}
		all = append(all, d)
	}
	return all
}

// TestWiden checks that named knobs are tried once each on both ends that have them, after those of
// findings, and nothing that disturbs more than allowed.
func TestWiden(t *testing.T) {
	v := path(3e8)
	near := &fakeHost{values: map[knob.ID]knob.Value{
		"sysctl:net.core.netdev_budget": "300", "ethtool:eth0/coalesce.rx-usecs": "50", "ethtool:eth0/ring.rx": "256",
		"link:eth0/mtu": "1500",
	}}
	far := &fakeHost{values: map[knob.ID]knob.Value{"sysctl:net.core.netdev_budget": "600",
		"ethtool:eth1/coalesce.rx-usecs": "8"}}
	found := []tune.Candidate{{Side: tune.Far, Knob: "sysctl:net.core.netdev_budget", Levels: []knob.Value{"900"},
		Why: "a finding"}}
	o := TuneOptions{
		Allow: knob.DisturbsNewSockets,
		Wide: definitions(t, "sysctl:net.core.netdev_budget", "ethtool:eth0/coalesce.rx-usecs", "ethtool:eth0/ring.rx",
			"link:eth0/mtu", "sysctl:net.ipv4.tcp_adv_win_scale"),
		Knobs: func(knob.ID) bool { return true },
	}
	var got []string
	for _, c := range widen(t.Context(), v, o, map[tune.Side]reader{tune.Near: near, tune.Far: far}, found) {
		got = append(got, fmt.Sprintf("%s %s %v", c.Side, c.Knob, c.Levels))
	}
	want := []string{
		"far sysctl:net.core.netdev_budget [900]",
		"near sysctl:net.core.netdev_budget [150 600 1200]",
		"near ethtool:eth0/coalesce.rx-usecs [25 100 200]",
		"far ethtool:eth1/coalesce.rx-usecs [4 16 32]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}

func TestInstancesOn(t *testing.T) {
	card := &host.Interface{Name: "eth0.100", Queues: []host.Queue{{Name: "rx-0"}, {Name: "rx-1"}, {Name: "tx-0"}}}
	for _, c := range []struct {
		pattern knob.ID
		want    []knob.ID
	}{
		{"sysctl:net.ipv4.tcp_sack", []knob.ID{"sysctl:net.ipv4.tcp_sack"}},
		{"link:*/mtu", []knob.ID{"link:eth0.100/mtu"}},
		{"sysctl:net.ipv4.neigh.*.unres_qlen_bytes", []knob.ID{"sysctl:net.ipv4.neigh.eth0/100.unres_qlen_bytes"}},
		{"queue:*/rx-*/rps_flow_cnt",
			[]knob.ID{"queue:eth0.100/rx-0/rps_flow_cnt", "queue:eth0.100/rx-1/rps_flow_cnt"}},
		{"ethtool:*/feature.*", nil},
		{"route:*/window", nil},
		{"cpu:*/scaling_governor", nil},
	} {
		if diff := cmp.Diff(c.want, instancesOn(c.pattern, card)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.pattern, diff)
		}
	}
	if got := instancesOn("link:*/mtu", nil); got != nil {
		t.Errorf("no card is known, yet %v", got)
	}
}

func TestRefusals(t *testing.T) {
	r := refusals{
		allow: knob.DisturbsNewSockets,
		owners: map[tune.Side][]owner.Owner{
			tune.Near: {{Name: "tuned", Running: true, Profile: "network-throughput",
				Sets: []string{"sysctl:net.ipv4.tcp_rmem"}}},
			tune.Far: {{Name: "irqbalance", Running: true}},
		},
		near: &fakeHost{denied: map[knob.ID]error{"sysctl:net.core.rmem_max": &knob.Error{Op: "check",
			Knob: "sysctl:net.core.rmem_max", Err: knob.ErrGlobal}}},
	}
	candidate := func(side tune.Side, id knob.ID, level knob.Value) tune.Candidate {
		return tune.Candidate{Side: side, Knob: id, Levels: []knob.Value{level}}
	}
	for _, c := range []struct {
		candidate tune.Candidate
		want      string
	}{
		{candidate(tune.Near, "sysctl:net.ipv4.tcp_rmem", "1 2 3"),
			"tuned sets it with its profile network-throughput; --force-owned tries it anyway"},
		{candidate(tune.Far, "sysctl:net.ipv4.tcp_rmem", "1 2 3"), ""},
		{candidate(tune.Far, "irq:45/affinity", "0"), "irqbalance redistributes interrupts"},
		{candidate(tune.Near, "link:eth0/mtu", "9000"), "class d2, allowed is d1"},
		{candidate(tune.Near, "sysctl:net.core.rmem_max", "1000000"), "belongs to the whole host"},
		{candidate(tune.Near, "sysctl:net.ipv4.nosuch", "1"), "not in the catalogue"},
		{candidate(tune.Near, "sysctl:net.ipv4.tcp_adv_win_scale", "1"), "only ever reported"},
		{tune.Candidate{Side: tune.Near, Knob: "sysctl:net.ipv4.tcp_sack"}, "no level"},
	} {
		got := r.of(t.Context(), c.candidate)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.candidate.Side, c.candidate.Knob, got, c.want)
		}
	}
	r.force, r.farFixed = true, "nothing is changed on db2"
	if got := r.of(t.Context(), candidate(tune.Near, "sysctl:net.ipv4.tcp_rmem", "1 2 3")); got != "" {
		t.Errorf("forced, yet %q", got)
	}
	if got := r.of(t.Context(),
		candidate(tune.Far, "sysctl:net.ipv4.tcp_wmem", "1 2 3")); got != "nothing is changed on db2" {
		t.Errorf("the far host is fixed, yet %q", got)
	}
}

// TestPlan checks that present values, time and restrictions are known before any write, and that
// an empty plan ends there.
func TestPlan(t *testing.T) {
	near := &fakeHost{values: map[knob.ID]knob.Value{"sysctl:net.ipv4.tcp_wmem": "4096 16384 65536"}}
	candidates := []tune.Candidate{
		{Side: tune.Near, Knob: "sysctl:net.ipv4.tcp_wmem",
			Levels: []knob.Value{"4096 16384 131072", "4096 16384 262144"}},
		{Side: tune.Far, Knob: "sysctl:net.ipv4.tcp_rmem", Levels: []knob.Value{"1 2 3"}},
		{Side: tune.Near, Knob: "sysctl:net.ipv4.tcp_notsent_lowat", Levels: []knob.Value{"131072"}},
	}
	refused := refusals{allow: knob.DisturbsNewSockets, farFixed: "nothing is changed on db2"}
	hosts := map[tune.Side]reader{tune.Near: near, tune.Far: &fakeHost{}}
	base := probing{objective: objectiveOf(t, "throughput"), direction: traffic.Up, streams: 1,
		segment: 800 * time.Millisecond}
	p := planOf(t.Context(), TuneOptions{Budget: 10 * time.Second, MaxTrials: 1}, base, candidates, refused, hosts)
	if p.Open() != 1 || p.Candidates[0].From != "4096 16384 65536" || p.Candidates[0].AtLeast != 16*time.Second ||
		p.AtLeast != 40*time.Second {
		t.Errorf("plan %+v", p)
	}
	if got := p.Candidates[2].Refused; !strings.Contains(got, "not exist") {
		t.Errorf("a knob that this host has not: %q", got)
	}
	notes := strings.Join(p.Notes, "; ")
	if !strings.Contains(notes, "1 of 3 candidates belong to it") || !strings.Contains(notes, "the budget is 10s") {
		t.Errorf("notes: %s", notes)
	}
	if o := p.nothingTried(false); len(o.Trials) != 3 || o.State != tune.StateUndone ||
		o.Trials[1].Verdict != tune.Refused || o.Trials[1].Reason == "" {
		t.Errorf("outcome %+v", o)
	}
	if o := p.nothingTried(true); len(o.Trials) != 0 || !strings.Contains(o.Reason, "dry run") {
		t.Errorf("dry run %+v", o)
	}
}

// TestJudgingAgainIsLighter checks that after a keep the idle path is not measured again, and that
// the rules still know its round trip.
func TestJudgingAgainIsLighter(t *testing.T) { synctest.Test(t, judgingAgainIsLighter) }

func judgingAgainIsLighter(t *testing.T) {
	far := &fakeFar{rtt: 0.020}
	first, err := Diagnose(t.Context(), far, DiagnoseOptions{Root: elsewhere})
	if err != nil {
		t.Fatal(err)
	}
	far.runs = nil
	again, err := Diagnose(t.Context(), far, DiagnoseOptions{Root: elsewhere}.after(first, "throughput"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range far.runs {
		if s.Test == traffic.Ping || s.Test == traffic.RR && s.ResponseBytes == 1 {
			t.Errorf("%s was made again", s.Test)
		}
	}
	if far.runs[0].Test != traffic.Stream || far.runs[0].WarmUp != warmUpFor(first) || far.runs[0].ProbeGap == 0 {
		t.Errorf("the load: %+v", far.runs[0])
	}
	if roundTrip(again) != roundTrip(first) || evidence.FlowsOf(&again.Case)[0].IdleRTTSeconds != 0.020 {
		t.Error("the round trip is not known any more")
	}
	far.runs = nil
	if _, err := Diagnose(t.Context(), far, DiagnoseOptions{Root: elsewhere}.after(first, "latency")); err != nil ||
		far.runs[0].Test != traffic.Ping {
		t.Errorf("where waiting is the goal, it is measured anew: %v, %+v", err, far.runs[0].Test)
	}
}

// TestFarHostPermitsSome checks that the plan has what the far host would refuse at the write.
func TestFarHostPermitsSome(t *testing.T) {
	r := refusals{allow: knob.DisturbsBriefLoss, farRefuses: func(id knob.ID) string {
		if err := (knob.Permission{Class: knob.DisturbsNewSockets}).Check(id); err != nil {
			return err.Error()
		}
		return ""
	}}
	ring := tune.Candidate{Side: tune.Far, Knob: "ethtool:eth0/ring.rx", Levels: []knob.Value{"512"}}
	if got := r.of(t.Context(), ring); !strings.Contains(got, "class d2, allowed is d1") {
		t.Errorf("a ring of the far host: %q", got)
	}
	for _, c := range []tune.Candidate{
		{Side: tune.Far, Knob: "sysctl:net.ipv4.tcp_rmem", Levels: []knob.Value{"1 2 3"}},
		{Side: tune.Near, Knob: ring.Knob, Levels: ring.Levels},
	} {
		if got := r.of(t.Context(), c); got != "" {
			t.Errorf("%s %s: %q", c.Side, c.Knob, got)
		}
	}
}
