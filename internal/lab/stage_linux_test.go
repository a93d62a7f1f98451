package lab

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/lab/work"
)

// ofMatrix returns a scenario of the matrix.
func ofMatrix(t *testing.T, name string) scenario.Scenario {
	t.Helper()
	all, err := scenario.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no scenario %s", name)
	return scenario.Scenario{}
}

func stage(t *testing.T, s scenario.Scenario, l scenario.Level) *Staged {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	staged, err := Stage(t.Context(), s, l, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := staged.Close(); err != nil {
			t.Error(err)
		}
	})
	return staged
}

// counter reads a kernel counter in a host: GROUP.NAME of /proc/net/snmp, netstat or sockstat.
func counter(t *testing.T, h *Host, name string) int {
	t.Helper()
	group, field, _ := strings.Cut(name, ".")
	var heads []string
	text := output(t, h.Exec(t.Context(), "cat", "/proc/net/snmp", "/proc/net/netstat", "/proc/net/sockstat"))
	for line := range strings.Lines(text) {
		key, rest, _ := strings.Cut(line, ":")
		words := strings.Fields(rest)
		if key != group {
			continue
		}
		// snmp and netstat have a line of names above a line of numbers; in sockstat names and
		// numbers alternate.
		pairs := len(words)%2 == 0 && len(words) > 1 && !numeric(words[0]) && numeric(words[1])
		for i, w := range words {
			switch {
			case pairs && w == field:
				n, _ := strconv.Atoi(words[i+1])
				return n
			case !pairs && numeric(w) && i < len(heads) && heads[i] == field:
				n, _ := strconv.Atoi(w)
				return n
			}
		}
		heads = words
	}
	t.Fatalf("host %s has no counter %s", h.Name, name)
	return 0
}

func numeric(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// TestNetnsFaultsHold asks the kernel whether the worlds have the faults that their scenarios name:
// each counter must rise.
func TestNetnsFaultsHold(t *testing.T) {
	for _, c := range []struct {
		scenario, host, counter string
		atLeast                 int
	}{
		{"udp-socket-overflow", "far", "Udp.RcvbufErrors", 100},
		{"listen-overflow", "far", "TcpExt.ListenOverflows", 10},
		{"port-exhaustion", "near", "TCP.tw", 200},
		{"incast", "near", "TcpExt.TCPTimeouts", 20},
		{"delayed-ack-stall", "far", "TcpExt.DelayedACKs", 20},
		{"slow-reader", "far", "TcpExt.TCPToZeroWindowAdv", 1},
		{"two-overflows", "far", "TcpExt.ListenOverflows", 10},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			s := stage(t, ofMatrix(t, c.scenario), scenario.Gross)
			h := s.Host(c.host)
			for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
				n := counter(t, h, c.counter)
				if n >= c.atLeast {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s at %s is %d, want %d", c.counter, c.host, n, c.atLeast)
				}
			}
		})
	}
}

// A staged world has the settings of its level, and a sound world has none of them.
func TestNetnsStage(t *testing.T) {
	const wmem = "sysctl:net.ipv4.tcp_wmem"
	for _, c := range []struct {
		level scenario.Level
		want  string
	}{{scenario.Plain, "4096 16384 1048576"}, {scenario.Gross, "4096 16384 262144"}} {
		s := stage(t, ofMatrix(t, "send-buffer"), c.level)
		all, err := s.Near().Settings(t.Context())
		if err != nil || all[wmem] != c.want {
			t.Errorf("%s: %v, %s is %q, want %q", c.level, err, wmem, all[wmem], c.want)
		}
		v, err := s.Diagnose(t.Context(), nil)
		if err != nil || !strings.Contains(string(v.Document), "send-buffer-limited") || v.Elapsed <= 0 || v.CPU <= 0 {
			t.Errorf("%v %+v", err, v)
		}
	}
	stage(t, ofMatrix(t, "healthy"), "")
	if _, err := Stage(t.Context(), ofMatrix(t, "offloads-off"), scenario.Plain, t.TempDir()); err == nil {
		t.Error("a level that the scenario does not have was staged")
	}
	lacks := ofMatrix(t, "path-loss")
	lacks.Needs.CongestionControl = "no-such-control"
	if _, err := Stage(t.Context(), lacks, scenario.Gross, t.TempDir()); !errors.Is(err, ErrLacks) {
		t.Errorf("%v, want ErrLacks", err)
	}
}

func TestNetnsStagePassive(t *testing.T) {
	s := stage(t, ofMatrix(t, "udp-socket-overflow"), scenario.Gross)
	v, err := s.Diagnose(t.Context(), nil)
	if err != nil || v.Document == nil {
		t.Errorf("%v %s", err, v.Document)
	}
}

// A setting or a program that fails is an error that names the host and quotes the kernel or the
// program, and leaves no world behind.
func TestNetnsStageThatFails(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	plain := ofMatrix(t, "shaper-left-behind")
	for name, c := range map[string]struct {
		fault scenario.Fault
		want  string
	}{
		"setting": {scenario.Fault{
			Settings: map[string][]scenario.Setting{"near": {{Knob: "qdisc:eth0/root", Value: "tbf speed 5"}}}},
			`host near: set qdisc of eth0: tbf has no "speed"`},
		"queue": {scenario.Fault{
			Settings: map[string][]scenario.Setting{"near": {{Knob: "queue:eth0/rx-9/rps_cpus", Value: "1"}}}},
			"host near: set queue:eth0/rx-9/rps_cpus"},
		"work": {scenario.Fault{Work: []work.Work{{Kind: work.TCPSource, Host: "near", To: "far", Port: 9}}},
			"work tcp-source on near did not start: exit status 1: " +
				"work tcp-source: dial tcp4 10.77.0.2:9: connect: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s := plain
			s.Flags, s.Levels = nil, map[scenario.Level]scenario.Fault{scenario.Gross: c.fault}
			staged, err := Stage(t.Context(), s, scenario.Gross, t.TempDir())
			if err == nil {
				_ = staged.Close()
			}
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "linerate lab-work: ", ""), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Only faults use settings of these kinds.
func TestNetnsFaultSettings(t *testing.T) {
	s := stage(t, ofMatrix(t, "sound-quiet"), "")
	err := s.Near().Set(t.Context(),
		scenario.Setting{Knob: "qdisc:eth0/root", Value: "tbf rate 30000000 burst 20000 limit 40000"},
		scenario.Setting{Knob: "queue:eth0/rx-0/rps_cpus", Value: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, s.Near().Exec(t.Context(), "cat", "/sys/class/net/eth0/queues/rx-0/rps_cpus")); strings.Trim(
		got, "0,") != "1" {
		t.Errorf("rps_cpus is %q", got)
	}
	if err := s.Near().Set(t.Context(), scenario.Setting{Knob: "qdisc:eth0/root", Value: "pfifo limit 7"}); err != nil {
		t.Fatal(err)
	}
}

// Work ends without an error when its context ends, and has printed once that it is ready.
func TestRunWorkEnds(t *testing.T) {
	for _, w := range []work.Work{
		{Kind: work.CPUHog, Host: "near", Busy: 0.01},
		{Kind: work.UDPSink, Host: "near", Port: testenv.FreePorts(t, 1)},
		{Kind: work.SlowListener, Host: "near", Port: testenv.FreePorts(t, 1), Interval: 0.01},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &firstWord{wrote: cancel}
		if err := work.Run(ctx, w, out); err != nil {
			t.Errorf("%s: %v", w.Kind, err)
		}
		if got := out.String(); got != work.Ready+"\n" {
			t.Errorf("%s printed %q", w.Kind, got)
		}
	}
}

// firstWord calls wrote at each write. It does not embed its buffer, because io.Copy would bypass
// Write for the buffer's ReadFrom.
type firstWord struct {
	text  bytes.Buffer
	wrote func()
}

func (f *firstWord) String() string { return f.text.String() }

func (f *firstWord) Write(b []byte) (int, error) {
	defer f.wrote()
	return f.text.Write(b)
}
