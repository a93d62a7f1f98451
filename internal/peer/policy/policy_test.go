package policy_test

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/policy"
)

const whole = `# what the fleet may do here
version: 1
kill_switch: off   # on: nothing

tests:
  max_share_ratio: 0.25
  link_rate: 25G
  max_seconds_per_hour: 60
  hours: 22:00-06:00
  peers: ["group:lab", 10.0.0.0/8, '2001:db8::/32']
changes:
  allow:
    - "sysctl:net.core.*"
    - ethtool:*/ring.rx   # d2
  deny: ["sysctl:net.core.busy_poll"]
  max_class: d2
  max_deadline: 90s
  hours: 01:00-05:00
  signatures: 1
  signatures_disturbing: 2
`

func parse(t *testing.T, text string) policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParse(t *testing.T) {
	want := policy.Policy{
		Tests: policy.Tests{MaxShareRatio: 0.25, LinkRate: 25e9, MaxSecondsPerHour: 60,
			Hours: policy.Hours{From: 22 * 60, To: 6 * 60}, Peers: []string{"group:lab", "10.0.0.0/8", "2001:db8::/32"}},
		Changes: policy.Changes{Allow: []knob.ID{"sysctl:net.core.*", "ethtool:*/ring.rx"},
			Deny: []knob.ID{"sysctl:net.core.busy_poll"}, MaxClass: knob.DisturbsBriefLoss,
			MaxDeadline: 90 * time.Second, Hours: policy.Hours{From: 60, To: 300}, Signatures: 1,
			SignaturesDisturbing: 2},
	}
	if got := parse(t, whole); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := parse(t, "version: 1"); !reflect.DeepEqual(got, policy.Default()) {
		t.Errorf("an empty policy: %+v", got)
	}
}

func TestParseRefuses(t *testing.T) {
	for what, c := range map[string][2]string{
		"version":       {"version: 1", "version: 2"},
		"unknown key":   {"  max_class: d2", "  max_klass: d2"},
		"section":       {"changes:", "change:"},
		"doubled":       {"  signatures: 1", "  signatures: 1\n  signatures: 2"},
		"twice":         {"tests:\n", "tests:\ntests:\n"},
		"tab":           {"  max_class", "\tmax_class"},
		"indent":        {"  max_class", "   max_class"},
		"anchor":        {"max_class: d2", "max_class: &a d2"},
		"alias":         {`    - "sysctl:net.core.*"`, "    - *a"},
		"tag":           {"max_class: d2", "max_class: !!str d2"},
		"block":         {"max_class: d2", "max_class: |\n    d2"},
		"two documents": {"changes:", "---\nchanges:"},
		"class":         {"d2\n  max_deadline", "d7\n  max_deadline"},
		"misspelt deny": {"busy_poll", "busy_polled"},
		"share":         {"0.25", "1.5"},
		"NaN":           {"0.25", "NaN"},
		"hour":          {"22:00-06:00", "22:00"},
		"24":            {"22:00-06:00", "24:00-06:00"},
		"no signature":  {"signatures: 1", "signatures: 0"},
		"long trial":    {"90s", "24h"},
		"prefix":        {"10.0.0.0/8", "10.0.0.1/8"},
		"list as word":  {"max_class: d2", "max_class: [d2]"},
		"word as list":  {`peers: ["group:lab", 10.0.0.0/8, '2001:db8::/32']`, "peers: all"},
		"open bracket":  {`'2001:db8::/32']`, `'2001:db8::/32'`},
		"switch":        {"kill_switch: off", "kill_switch: maybe"},
		"no items":      {"    - \"sysctl:net.core.*\"\n    - ethtool:*/ring.rx   # d2\n", ""},
	} {
		text := strings.Replace(whole, c[0], c[1], 1)
		if text == whole {
			t.Fatalf("%s: nothing was replaced", what)
		}
		if p, err := policy.Parse([]byte(text)); !errors.Is(err, policy.ErrFormat) {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
}

func TestChange(t *testing.T) {
	at := time.Date(2026, 11, 26, 2, 0, 0, 0, time.UTC)
	p := parse(t, whole)
	ask := func(id knob.ID, trial time.Duration, signers int) policy.Request {
		return policy.Request{Knob: id, Trial: trial, Signers: signers}
	}
	persist := func(signers int) policy.Request {
		return policy.Request{Knob: "sysctl:net.core.rmem_max", Signers: signers, Persist: true}
	}
	for what, c := range map[string]struct {
		p    policy.Policy
		r    policy.Request
		at   time.Time
		want error
	}{
		"allowed":          {p, ask("sysctl:net.core.rmem_max", time.Minute, 1), at, nil},
		"d2 with two":      {p, ask("ethtool:eth0/ring.rx", time.Minute, 2), at, nil},
		"d2 with one":      {p, ask("ethtool:eth0/ring.rx", time.Minute, 1), at, policy.ErrSignatures},
		"not allowed":      {p, ask("sysctl:net.ipv4.tcp_sack", time.Minute, 2), at, policy.ErrKnob},
		"denied":           {p, ask("sysctl:net.core.busy_poll", time.Minute, 2), at, policy.ErrKnob},
		"not in catalogue": {p, ask("sysctl:net.core.nosuch", time.Minute, 2), at, policy.ErrKnob},
		"outside hours": {p, ask("sysctl:net.core.rmem_max", time.Minute, 1), at.Add(3 * time.Hour),
			policy.ErrHours},
		"long":         {p, ask("sysctl:net.core.rmem_max", 91*time.Second, 1), at, policy.ErrTrialTooLong},
		"without file": {policy.Default(), ask("sysctl:net.core.rmem_max", time.Minute, 4), at, policy.ErrKnob},
		"kill switch": {parse(t, strings.Replace(whole, "off", "on", 1)), ask("sysctl:net.core.rmem_max",
			0, 4), at, policy.ErrSwitchedOff},
		"persist":      {parse(t, whole+"  persist: on\n"), persist(2), at, nil},
		"persist, one": {parse(t, whole+"  persist: on\n"), persist(1), at, policy.ErrSignatures},
		"persist, off": {p, persist(4), at, policy.ErrPersist},
		"undo at any hour": {p, policy.Request{Knob: "sysctl:net.core.rmem_max", Signers: 1, Undo: true},
			at.Add(5 * time.Hour), nil},
		"undo of no one": {p, policy.Request{Knob: "sysctl:net.core.rmem_max", Undo: true}, at,
			policy.ErrSignatures},
		"undo, switched off": {policy.Policy{KillSwitch: true}, policy.Request{Signers: 4, Undo: true}, at,
			policy.ErrSwitchedOff},
	} {
		err := c.p.Change(c.r, c.at)
		if !errors.Is(err, c.want) || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	low := p
	low.Changes.MaxClass = knob.DisturbsNothing
	if err := low.Change(ask("ethtool:eth0/ring.rx", 0, 4), at); !errors.Is(err, policy.ErrClass) {
		t.Errorf("class: %v", err)
	}
}

func TestHours(t *testing.T) {
	night := policy.Hours{From: 22 * 60, To: 6 * 60}
	for clock, want := range map[string]bool{"21:59": false, "22:00": true, "00:00": true, "05:59": true,
		"06:00": false} {
		at, err := time.Parse("15:04", clock)
		if err != nil {
			t.Fatal(err)
		}
		if night.Contains(at) != want {
			t.Errorf("%s: %v", clock, !want)
		}
	}
}

func TestPeer(t *testing.T) {
	tests := parse(t, whole).Tests
	for address, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "192.0.2.1": false,
		"2001:db8::5": true, "2001:db9::5": false} {
		if got := tests.Peer(netip.MustParseAddr(address), nil); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	if !tests.Peer(netip.MustParseAddr("192.0.2.1"), []string{"lab"}) ||
		!(policy.Tests{}).Peer(netip.MustParseAddr("192.0.2.1"), nil) {
		t.Error("a host of the group, or any host without a list, is refused")
	}
}

func TestMeaning(t *testing.T) {
	for text, want := range map[string][]string{
		whole: {
			"The fleet can run load tests for 60 seconds an hour, with at most 25 % of 25.0 Gb/s, " +
				"from 22:00 to 06:00 local time.",
			"The other end of a test must be one of group:lab, 10.0.0.0/8, 2001:db8::/32.",
			"The fleet can change sysctl:net.core.*, ethtool:*/ring.rx except sysctl:net.core.busy_poll, " +
				"up to class d2 (loses packets for a moment), from 01:00 to 05:00 local time.",
			"Each change needs 1 signature, and 2 signatures of different people from class d2 on. " +
				"An order to undo needs one, at any hour.",
			"A change that is not confirmed is taken back within 1m30s, without the network.",
			"A restart ends each change: none can be made permanent.",
		},
		strings.Replace(whole, "  signatures_disturbing: 2", "  persist: on", 1): {
			"The fleet can run load tests for 60 seconds an hour, with at most 25 % of 25.0 Gb/s, " +
				"from 22:00 to 06:00 local time.",
			"The other end of a test must be one of group:lab, 10.0.0.0/8, 2001:db8::/32.",
			"The fleet can change sysctl:net.core.*, ethtool:*/ring.rx except sysctl:net.core.busy_poll, " +
				"up to class d2 (loses packets for a moment), from 01:00 to 05:00 local time.",
			"Each change needs 1 signature, and 2 signatures of different people from class d2 on. " +
				"An order to undo needs one, at any hour.",
			"A change that is not confirmed is taken back within 1m30s, without the network.",
			"A confirmed change can be made permanent with 2 signatures.",
		},
		"version: 1": {
			"The fleet can run load tests for 10 seconds an hour, with at most 10 % of the rate of the link, at any hour.",
			"The other end of a test can be each host of the fleet.",
			"The fleet cannot change any setting of this host.",
		},
		"version: 1\nkill_switch: on": {
			"The kill switch is on: the fleet can neither measure nor change anything on this host.",
		},
	} {
		if got := parse(t, text).Meaning(); !reflect.DeepEqual(got, want) {
			t.Errorf("got:  %q\nwant: %q", got, want)
		}
	}
}

// TestRead checks owner and mode, as of every file that root obeys.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if p, err := policy.Read(durable.OS(), path); err != nil || len(p.Changes.Allow) != 0 {
		t.Errorf("no file: %+v, %v", p, err)
	}
	if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := policy.Read(durable.OS(), path); err != nil || len(p.Changes.Allow) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if p, err := policy.Read(durable.OS(), path); !errors.Is(err, fs.ErrPermission) || len(p.Changes.Allow) != 0 {
		t.Errorf("a file that every user can change: %+v, %v", p, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("version: 1\nchanges:\n  allow: [\"sysctl:net.core.*\"]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Parse(data)
		if err != nil {
			if !errors.Is(err, policy.ErrFormat) {
				t.Errorf("%v is not ErrFormat", err)
			}
			return
		}
		c := p.Changes
		if c.Signatures < 1 || c.SignaturesDisturbing < 1 || c.MaxDeadline <= 0 || c.MaxDeadline > 10*time.Minute ||
			!(p.Tests.MaxShareRatio >= 0 && p.Tests.MaxShareRatio <= 1) || len(p.Meaning()) == 0 {
			t.Errorf("%+v", p)
		}
	})
}
