package plan_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/plan"
)

// lineOf returns the line of a plan for a setting, or nil. A line of a write-up counts only if it
// is asked for.
func lineOf(p *plan.Plan, knob string, writeUp bool) *plan.Line {
	for i := range p.Lines {
		if l := &p.Lines[i]; l.Knob == knob && l.WriteUp == writeUp {
			return l
		}
	}
	return nil
}

// TestDefaultsByMemory checks the defaults that Linux works out from memory: what a small host has
// decides whether a limit is raised, and what undo brings back. Numbers are those of tcp_init and
// nf_conntrack_init_start.
func TestDefaultsByMemory(t *testing.T) {
	const table, rmem = "sysctl:net.netfilter.nf_conntrack_max", "sysctl:net.ipv4.tcp_rmem"
	for _, c := range []struct {
		system, knob, was string
		set               bool
		undo              string
	}{
		{"debian\nrelease: 12\nrole: firewall\nmemory: 8GiB\nconnections: 300000", table, "262144", true, "max=262144"},
		{"debian\nrelease: 12\nrole: firewall\nmemory: 4GiB\nconnections: 300000", table, "65536", true, "max=65536"},
		{"debian\nrelease: 12\nrole: firewall\nmemory: 512MiB\nconnections: 30000", table, "4096", true, "BEFORE_"},
		{"debian\nrelease: 10\nrole: firewall\nmemory: 512MiB\nconnections: 30000", table, "16384", true, "BEFORE_"},
		// 100000 entries: room on a large host, and too many for the table of a small one.
		{"debian\nrelease: 12\nrole: firewall\nmemory: 8GiB\nconnections: 50000", table, "262144", false, ""},
		{"debian\nrelease: 12\nrole: firewall\nmemory: 2GiB\nconnections: 50000", table, "65536", true, "max=65536"},
		// 20 MB: below the 32 MiB of a large host with 6.18, above the 16 MiB of one with 2 GiB.
		{"linux\nrelease: 6.18\nrole: bulk\nrtt: 8ms\nmemory: 32GiB\nconnections: 4", rmem, "4096 131072 33554432", false,
			""},
		{"linux\nrelease: 6.18\nrole: bulk\nrtt: 8ms\nmemory: 2GiB\nconnections: 4", rmem, "4096 131072 16777216", true,
			"BEFORE_"},
		{"debian\nrelease: 12\nrole: bulk\nrtt: 8ms\nmemory: 1GiB\nconnections: 4", rmem, "4096 131072 6291456", true,
			"4096 131072 6291456"},
	} {
		p := parsed(t, "link: 10G\nos: "+c.system+"\n")
		l := lineOf(p, c.knob, false)
		if l == nil {
			t.Errorf("%q: no line for %s", c.system, c.knob)
			continue
		}
		if undo := strings.Join(l.Undo, "\n"); l.Default != c.was || l.Set != c.set || !strings.Contains(undo, c.undo) {
			t.Errorf("%q: %s = %s: default %q, set %v, undo %q; want default %q, set %v, undo with %q", c.system, l.Knob,
				l.Value, l.Default, l.Set, undo, c.was, c.set, c.undo)
		}
		if strings.Contains(l.What, "Lowers") || strings.Contains(l.What, "smaller table") {
			t.Errorf("%q: a value above the default of the host is said to lower it: %s", c.system, l.What)
		}
	}
}

// TestReasonsOfForwardingHosts checks that what the role makes harmful has the reason of the role
// and no advice to reach the same another way, and that a value that lowers has its own reason.
func TestReasonsOfForwardingHosts(t *testing.T) {
	byRole := 0
	for _, name := range situations(t) {
		for _, l := range read(t, name).Lines {
			if !strings.Contains(l.Reason, "they are not raised") {
				continue
			}
			byRole++
			if l.Verdict != advice.Harmful || l.Since != "" || l.Today != "" || strings.HasPrefix(l.What, "Lowers") {
				t.Errorf("%s: %s = %s: the reason of the role beside %q, since %q, instead %q", name, l.Knob, l.Value, l.What,
					l.Since, l.Today)
			}
		}
	}
	if byRole < 8 {
		t.Errorf("%d lines have the reason of the role; want 8 or more", byRole)
	}
}

// TestJumboFramesOfSolaris checks how each release takes frames of 9000 bytes: up to 10 by the
// driver and the interface, from 11 on by the link alone.
func TestJumboFramesOfSolaris(t *testing.T) {
	const driver, mtu, link = "driver:e1000g/MaxFrameSize", "dladm:e1000g1/mtu", "link:e1000g1/mtu"
	for system, old := range map[string]bool{"solaris\nrelease: 9": true, "solaris\nrelease: 10": true,
		"solaris\nrelease: 11.4": false, "illumos": false} {
		p := parsed(t, "link: 1G\nrtt: 1ms\nmemory: 8GiB\nrole: nfs\nmtu: 9000\ninterface: e1000g1\ndriver: e1000g\nos: "+
			system+"\n")
		set := map[string]bool{}
		for _, l := range p.Lines {
			set[l.Knob] = set[l.Knob] || l.Set
		}
		if set[driver] != old || set[link] != old || set[mtu] == old {
			t.Errorf("%q: sets %v", system, set)
		}
		frame, writeUp := lineOf(p, driver, true), lineOf(p, mtu, true)
		want, wantMTU := advice.Harmful, advice.StillRight
		if old {
			want, wantMTU = advice.StillRight, advice.Ignored
		}
		if frame.Verdict != want || writeUp.Verdict != wantMTU || strings.Contains(writeUp.Reason, "asks for it") {
			t.Errorf("%q: %s, and %s: %s", system, frame.Verdict, writeUp.Verdict, writeUp.Reason)
		}
	}
}

// TestNotesForTheRelease checks that a plan names nconnect only where the kernel has it, and that
// the reason of rate 0 is not given for another rate of interrupts.
func TestNotesForTheRelease(t *testing.T) {
	for release, has := range map[string]bool{"4.19": false, "5.2": false, "5.3": true, "6.1": true} {
		p := parsed(t, "link: 1G\nrtt: 1ms\nmemory: 8GiB\nrole: nfs\nos: linux\nrelease: "+release+"\n")
		if notes := strings.Join(p.Notes, "\n"); strings.Contains(notes, "nconnect") != has ||
			!strings.Contains(notes, "rsize") {
			t.Errorf("linux %s: %q", release, notes)
		}
		for _, l := range p.Lines {
			small := strings.Contains(l.Reason, "small requests")
			if l.Knob == "module:e1000/InterruptThrottleRate" && small != (l.Value == "0") {
				t.Errorf("%s = %s: %s", l.Knob, l.Value, l.Reason)
			}
		}
	}
}
