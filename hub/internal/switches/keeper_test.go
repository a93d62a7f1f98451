package switches

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/hub/internal/switches/switchtest"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/sample"
)

// life is a switch whose clock a test moves.
type life struct {
	t    *testing.T
	tree *switchtest.Tree
	k    *Keeper
	at   time.Time
	boot time.Time
}

func newLife(t *testing.T, ports int, wide bool) *life {
	at := time.Unix(1_700_000_000, 0)
	l := &life{t: t, tree: switchtest.Switch(ports, wide), k: NewKeeper("sim"), at: at, boot: at.Add(-time.Hour)}
	l.take(0)
	return l
}

// take moves the clock and reads.
func (l *life) take(after time.Duration) {
	l.t.Helper()
	l.at = l.at.Add(after)
	l.tree.Set(switchtest.Uptime, uint64(uint32(l.at.Sub(l.boot)/(10*time.Millisecond))))
	s, err := mib.Read(l.t.Context(), l.tree, mib.Options{Neighbours: true})
	if err != nil {
		l.t.Fatal(err)
	}
	s.Time, s.UptimeAt = l.at, l.at
	l.k.Take(s)
}

func (l *life) sum(name string, c mib.Counter) float64 { return l.k.ports[name].sums[c] }

func (l *life) want(what string, c mib.Counter, n float64) {
	l.t.Helper()
	if got := l.sum("Gi0/1", c); got != n {
		l.t.Errorf("%s: %.0f, want %.0f; said %q", what, got, n, l.k.Warnings())
	}
}

const every = 30 * time.Second

// TestCounters runs a counter through what happens to real ones. What was counted is added exactly,
// or nothing is.
func TestCounters(t *testing.T) {
	l := newLife(t, 2, true)
	l.tree.Set(switchtest.InHC+"1", uint64(1000))
	l.take(every)
	l.want("growth", mib.InBytes, 1000)

	// A restart: counters, uptime and numbers begin anew, and the names have other indices.
	l.boot = l.at.Add(20 * time.Second)
	old := l.tree
	l.tree = switchtest.Switch(0, true)
	l.tree.Set(switchtest.Boots, int64(4))
	l.tree.Port(7, "Gi0/1", true)
	l.tree.Port(3, "Gi0/2", true)
	l.tree.Set(switchtest.InHC+"7", uint64(5000))
	l.take(every)
	l.want("restart", mib.InBytes, 1000)
	if !strings.Contains(strings.Join(l.k.Warnings(), " "), "restarted") {
		t.Errorf("said %q", l.k.Warnings())
	}
	l.tree.Add(switchtest.InHC+"7", 70)
	l.take(every)
	l.want("after the restart", mib.InBytes, 1070)
	if l.k.ports["Gi0/1"].last.Index != 7 {
		t.Error("the port is not the one of its name")
	}
	_ = old

	// A card is replaced: discontinuity, then a value below the old one.
	l.tree.Set(switchtest.Broken+"7", uint64(6000))
	l.tree.Set(switchtest.InHC+"7", uint64(900_000))
	l.take(every)
	l.want("discontinuity", mib.InBytes, 1070)
	l.tree.Set(switchtest.InHC+"7", uint64(10))
	l.take(every)
	l.want("a reset without one", mib.InBytes, 1070)
	l.tree.Set(switchtest.InHC+"7", uint64(1)<<60)
	l.take(every)
	l.want("a jump that no link carries", mib.InBytes, 1070)
	l.tree.Add(switchtest.InHC+"7", 5)
	l.take(every)
	l.want("after the jump", mib.InBytes, 1075)

	// The numbers change without a restart, and the counters with them.
	l.tree.Delete("1.3.6.1.2.1")
	l.tree.Set("1.3.6.1.2.1.1.3.0", uint64(0))
	l.tree.Port(9, "Gi0/1", true)
	l.tree.Set(switchtest.InHC+"9", uint64(3))
	l.take(every)
	l.want("renumbered", mib.InBytes, 1075)
	if p := l.k.ports["Gi0/2"]; p.seen {
		t.Error("a port that is gone is still seen")
	}
}

// TestRestarts judges restarts by uptimes alone.
func TestRestarts(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		before, after uint32
		elapsed       time.Duration
		boots         int64
		want          bool
	}{
		"runs on":                        {100_00, 130_00, every, 0, false},
		"runs on, a little late":         {100_00, 126_00, every, 0, false},
		"restarted":                      {100_00, 5_00, every, 0, true},
		"restarted soon after its start": {10_00, 50_00, 120 * time.Second, 0, true},
		"wrapped after 497 days":         {1<<32 - 10_00, 20_00, every, 0, false},
		"restarted near the wrap":        {1<<32 - 10_00, 2_00, every, 0, true},
		"another boot, a longer uptime":  {100_00, 130_00, every, 1, true},
	} {
		before := &mib.Snapshot{UptimeAt: at, UptimeTicks: c.before}
		after := &mib.Snapshot{UptimeAt: at.Add(c.elapsed), UptimeTicks: c.after, Boots: c.boots}
		if got := restarted(before, after); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNarrow wraps 32-bit counters.
func TestNarrow(t *testing.T) {
	l := newLife(t, 2, false)
	l.tree.Set(switchtest.In32+"1", uint64(1<<32-1000))
	l.take(every)
	l.tree.Set(switchtest.In32+"1", uint64(500))
	l.take(every)
	before := l.sum("Gi0/1", mib.InBytes)
	l.want("a wrap", mib.InBytes, before)
	if before != 1<<32-1000+1500 && before != 1500 {
		t.Errorf("a wrap adds %.0f", before)
	}
	// Two at once are a reset.
	l.tree.Set(switchtest.In32+"1", uint64(1<<32-1000))
	l.tree.Set(switchtest.Out32+"1", uint64(1<<32-1000))
	l.take(every)
	before = l.sum("Gi0/1", mib.InBytes)
	l.tree.Set(switchtest.In32+"1", uint64(10))
	l.tree.Set(switchtest.Out32+"1", uint64(10))
	l.take(every)
	l.want("a reset", mib.InBytes, before)
	// The uplink of 10 Gb/s could wrap several times in half a minute.
	if p := l.k.ports["Gi0/2"]; p.known[mib.InBytes] || !p.known[mib.OutDiscards] {
		t.Error("bytes of a 10 Gb/s port with 32-bit counters are believed, or its discards are not")
	}
	if !strings.Contains(strings.Join(l.k.Warnings(), " "), "Gi0/2 has only 32-bit counters") {
		t.Errorf("said %q", l.k.Warnings())
	}
}

// points returns the values of a reading by name and labels.
func points(r *sample.Reading) map[string]float64 {
	out := make(map[string]float64)
	for _, p := range r.Points {
		out[p.Series.Metric.Name+fmt.Sprint(p.Series.Values)] = p.Value
	}
	return out
}

// TestReadings checks the series: a kind of error begins with a zero before its first growth, a
// port that is gone ends, and so does everything of a switch that is silent.
func TestReadings(t *testing.T) {
	l := newLife(t, 2, true)
	first, zeros := l.k.Readings(l.at, time.Time{})
	if got := points(first); zeros != nil || got["linerate_switch_up[sim]"] != 1 || len(got) != 3+2*11 {
		t.Errorf("the first reading has %d points: %v", len(got), got)
	}
	before := l.at
	l.tree.Add(switchtest.FCS+"1", 4)
	l.tree.Add(switchtest.InErr+"1", 4)
	l.take(every)
	now, zeros := l.k.Readings(l.at, before)
	key := "linerate_switch_port_errors_total[sim Gi0/1 receive fcs]"
	if points(now)[key] != 4 || zeros == nil || !zeros.Time.Equal(before) {
		t.Fatalf("errors: %v, %+v", points(now), zeros)
	}
	if z := points(zeros); len(z) != 1 || z[key] != 0 {
		t.Errorf("zeros: %v", z)
	}
	info := "linerate_switch_port_info[sim Gi0/1  full web-1.example.net eth0]"
	if points(now)[info] != 1 {
		t.Errorf("no %s in %v", info, points(now))
	}
	silent := l.k.Silent(l.at.Add(every))
	if len(silent.Points) != 1 || silent.Points[0].Value != 0 || len(silent.Ended) < 20 {
		t.Errorf("a silent switch: %d points, %d ended", len(silent.Points), len(silent.Ended))
	}
	if again := l.k.Silent(l.at.Add(2 * every)); len(again.Ended) != 0 {
		t.Error("series end twice")
	}
	if len(Metrics()) != 13 {
		t.Errorf("%d metrics", len(Metrics()))
	}
}

// run lets a port carry frames for some readings, and lose some of them.
func (l *life) run(readings int, each func(add func(object string, n uint64))) {
	for range readings {
		each(func(object string, n uint64) { l.tree.Add(object+"1", n) })
		l.take(every)
	}
}

// TestFindings plants one fault at a time.
func TestFindings(t *testing.T) {
	busy := func(add func(string, uint64)) {
		add(switchtest.OutPkts, 1_000_000)
		add(switchtest.InPkts, 1_000_000)
		add(switchtest.OutHC, 375_000_000) // 100 Mb/s
		add(switchtest.InHC, 375_000_000)
	}
	for name, c := range map[string]struct {
		each     func(add func(string, uint64))
		half     bool
		code     evidence.Code
		severity evidence.Severity
		says     string
	}{
		"nothing": {each: func(func(string, uint64)) {}},
		"a few":   {each: func(add func(string, uint64)) { add(switchtest.OutDrop, 1); add(switchtest.InErr, 0) }},
		"bursts": {func(add func(string, uint64)) { add(switchtest.OutDrop, 1000) }, false, evidence.SwitchPortDiscards,
			evidence.Warning, "Pace the senders"},
		"full": {func(add func(string, uint64)) {
			add(switchtest.OutDrop, 50_000)
			add(switchtest.OutHC, 3_200_000_000)
		}, false, evidence.SwitchPortDiscards, evidence.Critical, "The port is full"},
		"a bad cable": {func(add func(string, uint64)) { add(switchtest.InErr, 50); add(switchtest.FCS, 50) }, false,
			evidence.SwitchPortErrors, evidence.Warning, "cable"},
		"half duplex": {func(func(string, uint64)) {}, true, evidence.SwitchHalfDuplex, evidence.Warning, "negotiate"},
		"a mismatch": {func(add func(string, uint64)) { add(switchtest.Late, 30); add(switchtest.InErr, 400) }, true,
			evidence.SwitchHalfDuplex, evidence.Warning, "other end sends at full duplex"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, 3, true)
			if c.half {
				l.tree.Set(switchtest.Duplex+"1", int64(2))
			}
			l.run(4, func(add func(string, uint64)) { busy(add); c.each(add) })
			found := l.k.Findings()
			if c.code == "" {
				if len(found) > 0 {
					t.Errorf("found %q", found[0].Title)
				}
				return
			}
			if len(found) != 1 || found[0].Code != c.code || found[0].Severity != c.severity ||
				!strings.Contains(found[0].Title+found[0].Remedy.Text, c.says) || found[0].Where != "switch sim Gi0/1" {
				t.Fatalf("found %+v", found)
			}
			if _, known := evidence.Explain(found[0].Code); !known || !slices.Contains(Codes(), found[0].Code) {
				t.Errorf("%s is not in the registry", found[0].Code)
			}
			t.Log(found[0].Title)
			// Ten minutes later without a fault it is gone.
			l.tree.Set(switchtest.Duplex+"1", int64(3))
			l.run(20, busy)
			if found := l.k.Findings(); len(found) > 0 {
				t.Errorf("ten minutes later: %q", found[0].Title)
			}
		})
	}
}

// TestJoin sets a switch's losses beside a host's verdict.
func TestJoin(t *testing.T) {
	host := []evidence.Finding{{Code: evidence.CPUSteal}, {Code: evidence.PathLoss, Severity: evidence.Warning,
		Where: "path"}}
	port := evidence.Finding{Code: evidence.SwitchPortDiscards, Severity: evidence.Warning, Where: "switch core Gi0/1",
		Title: "Port Gi0/1 of core drops.", Confidence: 0.9}
	other := port
	other.Where = "switch core Gi0/9"
	at := []Attached{{Switch: "core", Port: "Gi0/1", Interface: "eth0", Source: "LLDP"},
		{Switch: "core", Port: "Gi0/24", Interface: "eth0.20", Source: "bridge table of VLAN 20", Trunk: true}}
	trunk := port
	trunk.Where = "switch core Gi0/24"
	codes := func(all []evidence.Finding) (out []evidence.Code) {
		for _, f := range all {
			out = append(out, f.Code)
		}
		return out
	}
	for name, c := range map[string]struct {
		host, ports []evidence.Finding
		attached    []Attached
		want        []evidence.Code
	}{
		"no loss at the host": {host[:1], []evidence.Finding{port}, at, []evidence.Code{evidence.CPUSteal,
			evidence.SwitchPortDiscards}},
		"no loss at a switch": {host, nil, at, codes(host)},
		"at its own port": {host, []evidence.Finding{other, port}, at,
			[]evidence.Code{evidence.CPUSteal, evidence.LossAtSwitch, evidence.SwitchPortDiscards, evidence.SwitchPortDiscards}},
		"at a trunk": {host, []evidence.Finding{other, trunk}, at,
			[]evidence.Code{evidence.CPUSteal, evidence.LossAtSwitch, evidence.SwitchPortDiscards, evidence.SwitchPortDiscards}},
		"at its own port and a trunk": {host, []evidence.Finding{trunk, port}, at,
			[]evidence.Code{evidence.CPUSteal, evidence.LossAtSwitch, evidence.SwitchPortDiscards, evidence.SwitchPortDiscards}},
		"somewhere": {host, []evidence.Finding{other}, at,
			[]evidence.Code{evidence.CPUSteal, evidence.PathLoss, evidence.LossAtSwitch, evidence.SwitchPortDiscards}},
	} {
		got := Join(c.host, c.ports, c.attached)
		if !slices.Equal(codes(got), c.want) {
			t.Errorf("%s: %v", name, codes(got))
		}
		for _, f := range got {
			where := map[string]string{"at its own port": port.Where, "at a trunk": trunk.Where,
				"at its own port and a trunk": port.Where}[name]
			known := where != ""
			if f.Code == evidence.LossAtSwitch && (known != (len(f.Causes) > 0) || known && f.Where != where ||
				known != (f.Severity == evidence.Warning) ||
				strings.Contains(f.Title, "at a trunk behind which eth0.20 is") != (where == trunk.Where)) {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	if len(host) != 2 || host[1].Code != evidence.PathLoss {
		t.Error("the host's list was changed")
	}
}
