package processors

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// measured returns a profile whose named stage or kind of work has a share; the interval is five
// hundredths wide to each side.
func measured(stage, work string, share float64) *evidence.Profile {
	s := evidence.StageShare{Share: share, Low: share - 0.05, High: share + 0.05}
	p := &evidence.Profile{Event: "cycles", Samples: 2000}
	if stage != "" {
		s.Name = stage
		p.Stages = append(p.Stages, s)
	}
	if work != "" {
		s.Name = work
		p.Work = append(p.Work, s)
	}
	rest := evidence.StageShare{Name: "TCP rx", Share: 1 - share, Low: 0.95 - share, High: 1.05 - share}
	p.Stages = append(p.Stages, rest)
	return p
}

// TestCosts checks that each finding of a profile needs its own stage or work, by the lower end of
// the interval, and stays silent where the CPU is the limit of a test inside one machine.
func TestCosts(t *testing.T) {
	all := []cost{copyCost, checksumCost, driverCost, allocationCost, bpfCost}
	for _, c := range all {
		stage, work := "", ""
		if len(c.stages) > 0 {
			stage = c.stages[0]
		} else {
			work = c.work[0]
		}
		for _, x := range []struct {
			share   float64
			want    evidence.Severity
			virtual bool
		}{
			{c.notice + 0.04, "", false}, {c.notice + 0.06, evidence.Notice, false}, {c.costs + 0.06, evidence.Warning, false},
			{c.costs + 0.06, "", true},
		} {
			s := loaded(span(nil, cpu(0, 0, 0.2, 0.8, 0)), 1e9, 10e9)
			if x.virtual {
				s = loaded(s, 1e9, 0)
			}
			s.Profile = measured(stage, work, x.share)
			for _, other := range all {
				got := other.rule()(s)
				switch {
				case other.code != c.code || x.want == "":
					if got != nil {
						t.Errorf("%s %.2f, virtual %v: %s", c.code, x.share, x.virtual, got.Title)
					}
				case got == nil || got.Severity != x.want || len(got.Rejected) == 0 || got.Remedy.Text == "":
					t.Errorf("%s %.2f: %+v, want %s", c.code, x.share, got, x.want)
				}
			}
		}
	}
	watched := span(nil, cpu(0, 0, 0.2, 0.8, 0))
	watched.Profile = measured("", "copy", 0.7)
	if copyCost.rule()(watched) == nil {
		t.Error("a host at its normal work has no finding")
	}
	watched.Profile = nil
	if copyCost.rule()(watched) != nil || lockContention(watched) != nil {
		t.Error("a finding without a profile")
	}
}

// TestChecksumKnobs checks that the offloads that are off and may be on are proposed.
func TestChecksumKnobs(t *testing.T) {
	s := loaded(span(nil, cpu(0, 0, 0.2, 0.8, 0)), 1e9, 10e9)
	s.Host.Interfaces = []host.Interface{{Name: "eth0", Features: map[string]host.Feature{
		"rx-checksum": {On: false}, "tx-checksum-ip-generic": {On: true}, "tx-checksum-ipv6": {On: false, Fixed: true}}}}
	s.Profile = measured("", "checksum", 0.2)
	x := checksumCost.rule()(s)
	if x == nil || len(x.Remedy.Settings) != 1 || x.Remedy.Settings[0].Knob != "ethtool:eth0/feature.rx-checksum" {
		t.Errorf("%+v", x)
	}
}

// TestLockContention checks both kinds of evidence: counted waits, of which only those that keep a
// CPU matter, and samples in the slow paths where nothing was counted.
func TestLockContention(t *testing.T) {
	wait := func(kind string, ratio float64) evidence.LockWait {
		return evidence.LockWait{Kind: kind, Function: "lock_sock_nested", Callers: "udp_sendmsg < sock_sendmsg",
			Stage: "socket/syscall", PerSecond: 9000, Ratio: ratio}
	}
	for _, c := range []struct {
		name     string
		waits    []evidence.LockWait
		spinning float64
		want     evidence.Severity
	}{
		{"a sound host", []evidence.LockWait{wait("spinlock", 0.02)}, 0.01, ""},
		{"waits of two busy CPUs", []evidence.LockWait{wait("spinlock", 0.2)}, 0, evidence.Notice},
		{"many waits", []evidence.LockWait{wait("spinlock", 0.5)}, 0, evidence.Warning},
		{"a mutex sleeps", []evidence.LockWait{wait("mutex", 0.9)}, 0, ""},
		{"an old kernel counts nothing", nil, 0.3, evidence.Warning},
	} {
		s := loaded(span(nil, cpu(0, 0, 0.5, 0.5, 0), cpu(1, 0, 1, 0, 0)), 1e9, 10e9)
		s.Profile = measured("UDP", "", 0.4)
		s.Profile.Waits = c.waits
		s.Profile.Spinning = &evidence.StageShare{Share: c.spinning, Low: c.spinning * 0.8, High: c.spinning * 1.2}
		x := lockContention(s)
		if x == nil != (c.want == "") || x != nil && x.Severity != c.want {
			t.Errorf("%s: %+v, want %q", c.name, x, c.want)
		}
		if x != nil && c.waits != nil &&
			!strings.Contains(x.Title, "lock_sock_nested (socket/syscall, called by udp_sendmsg") {
			t.Errorf("%s: %s", c.name, x.Title)
		}
	}
}
