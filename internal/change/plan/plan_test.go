package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/plan"
)

var update = flag.Bool("update", false, "write the golden plans")

// read makes the plan of a file of testdata/plans.
func read(t *testing.T, name string) *plan.Plan {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, string(text))
}

// parsed makes the plan of a situation.
func parsed(t *testing.T, text string) *plan.Plan {
	t.Helper()
	g, err := plan.ReadSituation([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// situations are the golden ones.
func situations(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/plans/*.situation")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d situations, %v; want 20 or more", len(names), err)
	}
	return names
}

// TestGoldenPlans: the scripts are as they were read and approved.
func TestGoldenPlans(t *testing.T) {
	for _, name := range situations(t) {
		p := read(t, name)
		base := strings.TrimSuffix(name, ".situation")
		for file, got := range map[string]string{base + ".script": p.Script(), base + ".undo": p.UndoScript()} {
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs from what was approved (-update writes it):\n%s", file, got)
			}
		}
	}
}

// TestSetLinesAreRight: a plan sets only what advice calls right, with a reason, a source, a way to
// read, and a way back; and whatever it leaves out has a reason too.
func TestSetLinesAreRight(t *testing.T) {
	set := 0
	for _, name := range situations(t) {
		for _, l := range read(t, name).Lines {
			switch {
			case l.Reason == "" || l.What == "" || l.Source == "":
				t.Errorf("%s: %s = %s: no reason, effect or source: %+v", name, l.Knob, l.Value, l)
			case l.Verdict == advice.Unknown:
				t.Errorf("%s: %s = %s is not judged", name, l.Knob, l.Value)
			case !l.Set:
			case l.Verdict != advice.StillRight:
				t.Errorf("%s: sets %s = %s, which is %s", name, l.Knob, l.Value, l.Verdict)
			case l.Read == "" || l.Effect == "" || l.Undoing == "":
				t.Errorf("%s: %s: no way to read it, or no word on undo: %+v", name, l.Knob, l)
			case len(l.Undo) == 0 && l.UndoNote == "":
				t.Errorf("%s: %s: no way back", name, l.Knob)
			case len(l.Commands) == 0 && len(l.Files) == 0 && l.ByHand == "":
				t.Errorf("%s: %s: no way to set it", name, l.Knob)
			case l.WriteUp:
				t.Errorf("%s: sets the value of a write-up: %+v", name, l)
			default:
				set++
			}
		}
	}
	if set < 60 {
		t.Errorf("%d lines are set in all plans; want 60 or more", set)
	}
}

// TestScriptsReadBack: check-advice reads every form that a plan writes, and calls it right for
// that system and release.
func TestScriptsReadBack(t *testing.T) {
	for _, name := range situations(t) {
		p := read(t, name)
		// A comment may be a command behind the prompt of root, for check-advice.
		var lines []string
		for _, line := range strings.Split(p.Script(), "\n") {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "rem") {
				lines = append(lines, line)
			}
		}
		file, err := advice.Parse([]byte(strings.Join(lines, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if len(file.Unread) > 0 {
			t.Errorf("%s: check-advice does not read %+v", name, file.Unread)
		}
		o := p.Situation.System.OS
		target := advice.Target{OS: o, Release: map[advice.OS]advice.Release{o: p.Situation.System.Judged}}
		found := map[string]bool{}
		for _, j := range target.Judge(file) {
			found[strings.ToLower(j.Knob+"="+j.Value)] = true
			if j.Verdict != advice.StillRight {
				t.Errorf("%s: line %d %q (%s = %s): %s: %s", name, j.Line, j.Text, j.Knob, j.Value, j.Verdict, j.Why)
			}
		}
		for _, l := range p.Lines {
			if l.Set && len(l.Commands) > 0 && !found[strings.ToLower(l.Knob+"="+l.Value)] {
				t.Errorf("%s: check-advice does not find %s = %s in %q; found %v", name, l.Knob, l.Value, l.Commands, found)
			}
		}
	}
}

// TestStatuses holds the lines against what is known of each release: see docs/evidence/plans.md
// for the sources.
func TestStatuses(t *testing.T) {
	const set = "set"
	for _, c := range []struct{ plan, knob, value, want string }{
		// FreeBSD: what the article of 2007 raised is below today's defaults.
		{"freebsd-14-bulk", "sysctl:kern.ipc.maxsockbuf", "262144", "harmful"},
		{"freebsd-14-bulk", "sysctl:net.inet.tcp.recvspace", "65536", "now-default"},
		{"freebsd-14-bulk", "sysctl:net.inet.tcp.rfc1323", "1", "now-default"},
		{"freebsd-14-bulk", "sysctl:kern.ipc.nmbclusters", "32768", "harmful"},
		{"freebsd-14-bulk", "sysctl:kern.ipc.maxsockbuf", "56295424", set},
		{"freebsd-14-bulk", "sysctl:kern.polling.user_frac", "30", "ignored"},
		{"freebsd-14-bulk", "option:DEVICE_POLLING", "yes", "ignored"},
		{"freebsd-14-firewall", "option:HZ", "2500", "harmful"},
		{"freebsd-14-firewall", "ifconfig:em0/lro", "off", set},
		{"freebsd-14-latency", "sysctl:dev.em.0.enable_aim", "2", set},
		{"freebsd-13-bulk", "sysctl:net.inet.tcp.cc.algorithm", "cubic", set},
		{"freebsd-6-bulk", "sysctl:kern.ipc.maxsockbuf", "262144", "now-default"},
		{"freebsd-6-bulk", "sysctl:net.inet.tcp.sendspace", "65536", "still-right"},
		{"freebsd-5-firewall", "option:DEVICE_POLLING", "yes", set},
		{"freebsd-5-firewall", "sysctl:kern.polling.enable", "1", set},
		{"freebsd-5-firewall", "sysctl:kern.polling.user_frac", "30", set},
		{"freebsd-5-firewall", "sysctl:kern.ipc.nmbclusters", "32768", "still-right"}, // packets under way
		{"freebsd-5-firewall", "sysctl:net.inet.tcp.sendspace", "65536", "harmful"},   // a firewall's buffers
		// Linux: defaults that grew past the write-ups' values.
		{"debian-12-bulk", "sysctl:net.ipv4.tcp_window_scaling", "1", "now-default"},
		{"debian-12-bulk", "sysctl:net.ipv4.tcp_rmem", "40960 1048560 4194304", "harmful"},
		{"debian-12-bulk", "sysctl:net.ipv4.tcp_mem", "98304 131072 196608", "harmful"},
		{"debian-12-bulk", "sysctl:net.core.rmem_default", "65536", "harmful"},
		{"debian-12-bulk", "sysctl:net.ipv4.tcp_rmem", "4096 131072 50003968", set},
		{"debian-12-bulk", "module:e1000/XsumRX", "0", "harmful"},
		{"linux-6-router", "sysctl:net.core.rmem_max", "4194304", "now-default"}, // since 6.18
		{"linux-6-router", "sysctl:net.core.wmem_max", "8388608", "harmful"},     // a router's buffers
		{"debian-13-nameserver", "named:cleaning-interval", "1", "removed"},
		{"debian-13-nameserver", "named:lame-ttl", "900", "ignored"},
		{"debian-13-nameserver", "named:max-cache-size", "100K", "harmful"},
		// Solaris: the values of the write-up are of use; the names went from ndd to ipadm.
		{"solaris-10-nfs", "ndd:tcp/tcp_xmit_hiwat", "983040", "still-right"},
		{"solaris-10-nfs", "ndd:tcp/tcp_max_buf", "1310720", set},
		{"solaris-10-nfs", "driver:e1000g/MaxFrameSize", "3", set},
		{"illumos-nfs", "dladm:e1000g1/mtu", "9000", set},
		{"illumos-router", "ndd:tcp/tcp_recv_hiwat", "983040", "harmful"}, // a router's buffers
		// Windows: nothing reads the old values since Vista.
		{"windows-2016-bulk", `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize`, "131400",
			"ignored"},
		{"windows-11-bulk", `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Tcp1323Opts`, "3",
			"now-default"},
		{"windows-xp-bulk", `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\NumForwardPackets`, "60000",
			"ignored"},
		{"windows-xp-bulk", "service:SharedAccess", "disabled", "harmful"},
		{"windows-xp-bulk", `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Tcp1323Opts`, "3", set},
		{"windows-2016-bulk", "netsh:tcp/autotuninglevel", "normal", "now-default"},
		{"windows-2016-bulk", "netsh:tcp/autotuninglevel", "experimental", "harmful"},
		{"windows-2022-latency", "adapter:Ethernet 2/*InterruptModeration", "0", set},
	} {
		var got []string
		for _, l := range read(t, "testdata/plans/"+c.plan+".situation").Lines {
			if l.Knob != c.knob || l.Value != c.value {
				continue
			}
			if l.Set {
				got = append(got, set)
			} else {
				got = append(got, string(l.Verdict))
			}
		}
		if !slices.Contains(got, c.want) {
			t.Errorf("%s: %s = %s: %v, want %s", c.plan, c.knob, c.value, got, c.want)
		}
	}
}

// TestOrder: a cap comes before what it caps, and undo goes the other way.
func TestOrder(t *testing.T) {
	// first is the number of the first command with a name in it.
	first := func(script, name string) int {
		for i, line := range strings.Split(script, "\n") {
			if strings.Contains(line, name) && !strings.HasPrefix(line, "#") {
				return i
			}
		}
		t.Errorf("no command has %q:\n%s", name, script)
		return -1
	}
	for plan, order := range map[string][]string{
		"freebsd-14-bulk": {"kern.ipc.maxsockbuf", "net.inet.tcp.sendbuf_max", "net.inet.tcp.recvbuf_max"},
		"freebsd-6-bulk":  {"kern.ipc.maxsockbuf", "net.inet.tcp.sendspace", "net.inet.tcp.recvspace"},
		"solaris-11-bulk": {" max_buf", " send_buf", " recv_buf"},
		"solaris-9-bulk":  {"tcp_max_buf", "tcp_xmit_hiwat", "tcp_recv_hiwat"},
	} {
		p := read(t, "testdata/plans/"+plan+".situation")
		for i := 1; i < len(order); i++ {
			if first(p.Script(), order[i-1]) > first(p.Script(), order[i]) {
				t.Errorf("%s: %q is not before %q", plan, order[i-1], order[i])
			}
			if first(p.UndoScript(), order[i-1]) < first(p.UndoScript(), order[i]) {
				t.Errorf("%s: undo has %q before %q", plan, order[i-1], order[i])
			}
		}
	}
}

// TestNoBuffersWhereNothingEnds: routers and firewalls get no larger buffers on any system.
func TestNoBuffersWhereNothingEnds(t *testing.T) {
	for _, role := range []string{"router", "firewall"} {
		for _, system := range []string{"debian 12", "rhel 9", "freebsd 14", "freebsd 5.3", "solaris 10", "solaris 11.4",
			"illumos", "windows 2022", "windows xp"} {
			o, release, _ := strings.Cut(system, " ")
			text := "link: 10G\nround trip: 100ms\nmemory: 256GiB\nrole: " + role + "\nos: " + o + "\n"
			if release != "" {
				text += "release: " + release + "\n"
			}
			p := parsed(t, text)
			if p.Memory != nil {
				t.Errorf("%s %s: plans buffers: %+v", system, role, p.Memory)
			}
			for _, l := range p.Lines {
				for _, word := range []string{"mem", "buf", "space", "hiwat", "cwnd", "window", "clusters"} {
					if l.Set && strings.Contains(strings.ToLower(l.Knob), word) {
						t.Errorf("%s %s: sets %s", system, role, l.Knob)
					}
				}
			}
		}
	}
}

// TestLoweredLimit: a host whose limit an old setting holds below the default gets the default
// again, where that has room for what a connection needs; a host without that setting gets nothing.
func TestLoweredLimit(t *testing.T) {
	for _, c := range []struct{ present, want string }{
		{"4096 16384 32768", "4096 16384 4194304"},
		{"4096 16384 4194304", ""},
		{"4096 16384 2097152", ""}, // of 2000 connections each may take 1.5 MiB
		{"", ""},
	} {
		g, err := plan.ReadSituation([]byte("link: 1G\nrtt: 20ms\nmemory: 32GiB\nrole: web\nos: debian\nrelease: 12\n"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := g.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if c.present != "" {
			s.Present = map[string]string{"sysctl:net.ipv4.tcp_wmem": c.present}
		}
		p, err := plan.Make(s)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i := range p.Lines {
			if l := &p.Lines[i]; l.Set && l.Knob == "sysctl:net.ipv4.tcp_wmem" {
				got = l.Value
				if undo := strings.Join(l.Undo, "\n"); !strings.Contains(undo, c.present) {
					t.Errorf("%s: undo is %q", c.present, undo)
				}
			}
		}
		if got != c.want {
			t.Errorf("a host with %q: the plan sets %q, want %q", c.present, got, c.want)
		}
	}
}

// TestMemory: buffers × connections never take more than their share, and the plan says what that
// costs.
func TestMemory(t *testing.T) {
	for _, c := range []struct {
		memory, connections string
		lowered             bool
		set                 int
	}{
		{"256GiB", "100", false, 2},
		{"32GiB", "32", false, 2},
		{"8GiB", "32", true, 2},   // 24 MiB each, still above the defaults
		{"4GiB", "1000", true, 0}, // 0.4 MiB each: below the defaults, which stay
	} {
		p := parsed(t, "link: 10G\nrtt: 20ms\nmemory: "+c.memory+"\nrole: bulk\nos: debian\nrelease: 12\nconnections: "+
			c.connections+"\n")
		m := p.Memory
		set := 0
		for _, l := range p.Lines {
			if l.Set {
				set++
			}
		}
		if m.Lowered != c.lowered || set != c.set || m.TogetherBytes > m.BudgetBytes ||
			m.TogetherBytes != m.BufferBytes*100 && c.connections == "100" {
			t.Errorf("%s, %s connections: %+v, %d set", c.memory, c.connections, m, set)
		}
		if noted := strings.Contains(strings.Join(p.Notes, "\n"), "memory has"); noted != c.lowered {
			t.Errorf("%s, %s connections: a note about lower buffers: %v, want %v", c.memory, c.connections, noted, c.lowered)
		}
	}
}

// TestPathBeyondMemory checks the reason of a default that stays because memory has no room for
// what the path needs: a default of 6 MiB has no room for 715 MiB.
func TestPathBeyondMemory(t *testing.T) {
	for _, system := range []string{"linux\nrelease: 6.12", "freebsd\nrelease: 14.2"} {
		p := parsed(t, "link: 10G\nrtt: 300ms\nmemory: 64MiB\nrole: bulk\nos: "+system+"\n")
		short := 0
		for _, l := range p.Lines {
			if l.WriteUp || l.Set || !strings.Contains(l.Reason, "needs 715 MiB") {
				continue
			}
			short++
			if strings.Contains(l.Reason, "has room for it") || !strings.Contains(l.Reason, "memory has ") ||
				l.What != "Not set: memory has no room for more." {
				t.Errorf("%s: %s: %s %s", system, l.Knob, l.What, l.Reason)
			}
		}
		if short == 0 {
			t.Errorf("%s: no line says what the path needs", system)
		}
	}
}

// TestInterfaceThatNobodyNamed checks that a plan says which name its commands have instead.
func TestInterfaceThatNobodyNamed(t *testing.T) {
	for text, want := range map[string]string{
		"os: debian\nrelease: 12\nrole: bulk\nmtu: 9000\n":                  "the commands name eth0",
		"os: freebsd\nrelease: 14.2\nrole: router\n":                        "the commands name em0",
		"os: windows\nrelease: 2022\nrole: bulk\nmtu: 9000\n":               "the commands name Ethernet",
		"os: debian\nrelease: 12\nrole: bulk\nmtu: 9000\ninterface: ens3\n": "",
		"os: debian\nrelease: 12\nrole: bulk\n":                             "",
	} {
		p := parsed(t, "link: 10G\nrtt: 5ms\nmemory: 16GiB\n"+text)
		notes := strings.Join(p.Notes, "\n")
		if !strings.Contains(notes, want) || want == "" && strings.Contains(notes, "No interface is given") {
			t.Errorf("%q: %q, want %q", text, notes, want)
		}
	}
}

// TestKernelsOutsideTheFacts checks that a plan is not made with the defaults of another kernel.
func TestKernelsOutsideTheFacts(t *testing.T) {
	for release, known := range map[string]bool{"2.4.20": false, "2.6.9": false, "2.6.17": true, "2.6.32-754.el6": true,
		"6.18.44": true, "7.0": true, "14.2": false, "20348": false} {
		if _, err := plan.ParseSystem("linux", release); (err == nil) != known {
			t.Errorf("linux %s: %v", release, err)
		}
	}
}
