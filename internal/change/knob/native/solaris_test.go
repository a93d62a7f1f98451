package native_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/native"
	"github.com/linerate/linerate/internal/host/solaris"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// sun is an illumos host from its recordings.
type sun struct {
	*played
	files *durable.Mem
}

// runSun plays ipadm and dladm; texts has a line for each property.
func runSun(p *played, argv []string) (string, error) {
	last := argv[len(argv)-1]
	switch {
	case argv[0] != "ipadm" && argv[0] != "dladm":
		return "", fmt.Errorf("%s: %w", argv[0], tool.ErrNoProgram)
	case argv[1] == "show-phys":
		return "net0:e1000g0\nnet1:igb0\n", nil
	case argv[1] == "show-prop" || argv[1] == "show-linkprop":
		if line, ok := p.texts[argv[0]+" "+last+" "+argv[6]]; ok {
			return line + "\n", nil
		}
		return "", failure(argv[0], argv[0]+": "+last+": unknown property or object not found")
	}
	property, value, _ := strings.Cut(argv[4], "=")
	key := argv[0] + " " + last + " " + property
	fields := solaris.Fields(p.texts[key])
	if len(fields) < 4 {
		return "", failure(argv[0], argv[0]+": invalid link '"+last+"'")
	}
	if argv[0] == "dladm" && property == "mtu" && last == "net1" {
		return "", failure("dladm", "dladm: warning: cannot set link property 'mtu' on 'net1': link busy")
	}
	fields[1] = value
	p.texts[key] = strings.Join(fields, ":")
	return "", nil
}

func newSun(t testing.TB) *sun {
	s := &sun{played: &played{texts: map[string]string{}, run: runSun}, files: durable.NewMem()}
	for line := range strings.Lines(recorded(t, "solaris-props.txt")) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		s.texts[strings.Join(f[:3], " ")] = f[3]
	}
	for _, err := range []error{s.files.Mkdir("/kernel", 0o755), s.files.Mkdir("/kernel/drv", 0o755),
		durable.Replace(s.files, "/kernel/drv/e1000g.conf", []byte(recorded(t, "e1000g.conf")), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *sun) host(t testing.TB) *native.Host {
	return native.Solaris(catalogue(t, "solaris"), s.played, s.files)
}

func TestSolaris(t *testing.T) {
	knobtest.Suite(t, func(t *testing.T) knobtest.Fixture {
		s := newSun(t)
		host := s.host(t)
		return knobtest.Fixture{
			Backend: host,
			Writable: []knobtest.Pair{
				{Knob: "ipadm:tcp/max_buf", A: "16777216", B: "33554432"},
				{Knob: "ipadm:tcp/send_buf", A: "65536", B: "131072"},
				{Knob: "ipadm:tcp/sack", A: "passive", B: "active"},
				{Knob: "dladm:net0/mtu", A: "9000", B: "1500"},
				{Knob: "dladm:net0/_intr_throttling_rate", A: "200", B: "0"},
				{Knob: "driver:e1000g/1/MaxFrameSize", A: "3", B: "0"},
			},
			Messy: []knobtest.Messy{{Knob: "ipadm:tcp/recv_buf", Text: " 0065536", ReadBack: "65536"}},
			Invalid: []knob.Setting{
				{Knob: "ipadm:tcp/send_buf", Value: "1048577"}, // above max_buf
				{Knob: "ipadm:tcp/sack", Value: "sometimes"},
				{Knob: "dladm:net0/mtu", Value: "64000"},
				{Knob: "dladm:net0/flowctrl", Value: "auto"},
				{Knob: "ipadm:tcp/max_buf", Value: "large"},
			},
			ReadOnly: knob.Setting{Knob: "dladm:net0/speed", Value: "100"},
			Missing: []knob.ID{"ipadm:tcp/_no_such", "dladm:net9/mtu", "driver:bge/0/MaxFrameSize",
				"driver:../../etc/passwd/0/x"},
			Unsupported: "sysctl:net.inet.tcp.sendspace",
			Foreign: func(t *testing.T, set knob.Setting) {
				if set.Knob.Kind() == knob.KindDriver {
					text := "MaxFrameSize=0," + string(set.Value) + ";\n"
					if err := durable.Replace(s.files, "/kernel/drv/e1000g.conf", []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				key := set.Knob.Kind() + " " + set.Knob.Subject() + " " + set.Knob.Attribute()
				fields := solaris.Fields(s.texts[key])
				fields[1] = string(set.Value)
				s.texts[key] = strings.Join(fields, ":")
			},
			Device: "dladm:net0/mtu",
			Vanish: func(*testing.T) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for key := range s.texts {
					if strings.HasPrefix(key, "dladm net0 ") {
						delete(s.texts, key)
					}
				}
			},
		}
	})
}

// A driver that cannot change a running link says so; the answer names the way out.
func TestBusyLink(t *testing.T) {
	err := newSun(t).host(t).Write(t.Context(), "dladm:net1/mtu", "1500")
	if err == nil || !strings.Contains(err.Error(), "remove its IP interface first") {
		t.Errorf("%v", err)
	}
}

// Raising a buffer above max_buf names the knob to raise first, and then works.
func TestMaxBufFirst(t *testing.T) {
	host := newSun(t).host(t)
	err := host.CheckWrite(t.Context(), "ipadm:tcp/recv_buf", "4194304")
	var r *knob.RangeError
	if !errors.As(err, &r) || !strings.Contains(r.Allowed, "raise ipadm:tcp/max_buf first") {
		t.Errorf("%v", err)
	}
	for _, s := range []knob.Setting{{Knob: "ipadm:tcp/max_buf", Value: "8388608"}, {Knob: "ipadm:tcp/recv_buf",
		Value: "4194304"}} {
		if err := host.Write(t.Context(), s.Knob, s.Value); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// Solaris 10 has no ipadm: the same knobs go through ndd, under the names that it has.
func TestNddWhereIpadmIsMissing(t *testing.T) {
	values := map[string]string{"/dev/tcp tcp_xmit_hiwat": "49152", "/dev/tcp tcp_max_buf": "1048576"}
	p := &played{run: func(_ *played, argv []string) (string, error) {
		if argv[0] != "ndd" {
			return "", fmt.Errorf("%s: %w", argv[0], tool.ErrNoProgram)
		}
		key := argv[2] + " " + argv[3]
		old, ok := values[key]
		switch {
		case !ok:
			return "", failure("ndd", "operation failed: Invalid argument, no such name")
		case argv[1] == "-set":
			values[key] = argv[4]
			return "", nil
		}
		return old + "\n", nil
	}}
	host := native.Solaris(catalogue(t, "solaris"), p, durable.NewMem())
	id, err := knob.ParseID("ipadm:tcp/tcp_xmit_hiwat")
	if err != nil || id != "ipadm:tcp/send_buf" {
		t.Fatalf("%s, %v", id, err)
	}
	if err := host.Write(t.Context(), id, "400000"); err != nil || values["/dev/tcp tcp_xmit_hiwat"] != "400000" {
		t.Errorf("%v: %v", err, values)
	}
}

func TestSolarisInstances(t *testing.T) {
	c, host := catalogue(t, "solaris"), newSun(t).host(t)
	for pattern, want := range map[knob.ID]int{"dladm:*/mtu": 2, "dladm:*/_intr_adaptive": 1,
		"driver:e1000g/*/MaxFrameSize": 16,
		"ipadm:tcp/send_buf":           1} {
		d, _ := c.Lookup(pattern)
		got, err := host.Instances(t.Context(), d)
		if err != nil || len(got) != want || len(slices.Compact(got)) != want {
			t.Errorf("%s: %v, %v", pattern, got, err)
		}
	}
}
