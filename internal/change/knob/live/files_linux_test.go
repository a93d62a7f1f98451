package live_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// fileFixture is a namespace with a sysfs of its own: what the live backend reads and writes as
// files, and the queueing disciplines.
func fileFixture(t *testing.T) knobtest.Fixture {
	ns := knobtest.NewNetNSWithSysfs(t)
	ns.Do(t, func() {
		c, err := nl.Dial()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		for _, step := range []error{
			c.AddVeth("v0.100", "v1", -1),
			ethtool.New(c).SetFeature("v0.100", "rx-gro", true), // a veth polls only for that
			c.SetUp("v0.100"), c.SetUp("v1"),
		} {
			if step != nil {
				t.Error(step)
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	f := knobtest.Fixture{
		Backend: ns.Backend(t, live.New()),
		Writable: []knobtest.Pair{
			{Knob: "queue:v0.100/rx-0/rps_cpus", A: "1", B: "0"},
			{Knob: "queue:v0.100/rx-0/rps_flow_cnt", A: "128", B: "0"},
			{Knob: "link:v0.100/napi_defer_hard_irqs", A: "2", B: "0"},
			{Knob: "link:v0.100/gro_flush_timeout", A: "20000", B: "0"},
			{Knob: "link:v0.100/threaded", A: "1", B: "0"},
			{Knob: "link:v1/gso_max_size", A: "200000", B: "100000"},
			{Knob: "link:v1/gro_max_size", A: "200000", B: "100000"},
			{Knob: "link:v1/gso_ipv4_max_size", A: "60000", B: "100000"},
			{Knob: "link:v1/gro_ipv4_max_size", A: "60000", B: "100000"},
			{Knob: "qdisc:v1/root", A: "pfifo", B: "pfifo_fast"},
		},
		Messy: []knobtest.Messy{
			{Knob: "queue:v0.100/rx-0/rps_cpus", Text: "00000000,00000001", ReadBack: "1"},
			// The kernel makes it a power of two.
			{Knob: "queue:v0.100/rx-0/rps_flow_cnt", Text: "100", ReadBack: "128"},
			{Knob: "link:v0.100/threaded", Text: "yes", ReadBack: "1"},
		},
		Invalid: []knob.Setting{
			{Knob: "queue:v0.100/rx-0/rps_cpus", Value: "xyz"},
			{Knob: "queue:v0.100/rx-0/rps_cpus", Value: "1," + knob.Value(strings.Repeat("00000000,", 400)) + "0"},
			{Knob: "link:v0.100/napi_defer_hard_irqs", Value: "-1"},
			{Knob: "link:v0.100/gro_flush_timeout", Value: "soon"},
			{Knob: "link:v1/gso_max_size", Value: "16"},
			{Knob: "link:v1/gso_max_size", Value: "99999999"},
			{Knob: "qdisc:v1/root", Value: "no_such_discipline"},
			{Knob: "qdisc:v1/root", Value: "htb"},
		},
		ReadOnly: knob.Setting{Knob: "module:tcp_cubic/bic_scale", Value: "42"},
		Missing: []knob.ID{
			"queue:eth9/rx-0/rps_cpus", "queue:v0.100/rx-77/rps_cpus", "queue:v0.100/tx-77/xps_cpus",
			"queue:v0.100/other/rps_cpus",
			"link:eth9/threaded", "qdisc:eth9/root",
		},
		Unsupported: "queue:v0.100/tx-0/rps_cpus",
		Foreign: func(t *testing.T, s knob.Setting) {
			ns.Do(t, func() { foreignFile(t, s) })
		},
		Device: "queue:v0.100/rx-0/rps_cpus",
		Vanish: func(t *testing.T) { deleteLink(t, ns, "v1") },
	}
	f.Writable = slices.DeleteFunc(f.Writable, func(p knobtest.Pair) bool { return !known(t, p.Knob) })
	// A veth has as many transmit queues as there are CPUs, and one alone has no map.
	if runtime.NumCPU() > 1 {
		f.Writable = append(f.Writable, knobtest.Pair{Knob: "queue:v0.100/tx-0/xps_cpus", A: "1", B: "0"},
			knobtest.Pair{Knob: "queue:v0.100/tx-0/xps_rxqs", A: "1", B: "0"})
	}
	return f
}

// foreignFile does what a shell would.
func foreignFile(t *testing.T, s knob.Setting) {
	file := filepath.Join("/sys/class/net", s.Knob.Subject(), s.Knob.Attribute())
	if strings.HasSuffix(s.Knob.Attribute(), "_max_size") {
		n, err := strconv.Atoi(string(s.Value))
		c, dialErr := nl.Dial()
		if dialErr == nil {
			err = errors.Join(err, c.SetSizeLimit(s.Knob.Subject(), nl.SizeLimit(s.Knob.Attribute()), n), c.Close())
		}
		if err = errors.Join(err, dialErr); err != nil {
			t.Error(err)
		}
		return
	}
	switch s.Knob.Kind() {
	case knob.KindQueue:
		name, queue, _ := strings.Cut(s.Knob.Subject(), "/")
		file = filepath.Join("/sys/class/net", name, "queues", queue, s.Knob.Attribute())
	case knob.KindQdisc:
		c, err := nl.Dial()
		if err == nil {
			err = errors.Join(c.ReplaceQdisc(s.Knob.Subject(), string(s.Value)), c.Close())
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err := os.WriteFile(file, []byte(s.Value), 0); err != nil {
		t.Error(err)
	}
}

func TestNetnsLiveFiles(t *testing.T) { knobtest.Suite(t, fileFixture) }

func TestNetnsDryRunOverLiveFiles(t *testing.T) { dryRunOver(t, fileFixture) }

// A sysfs that shows another namespace is not believed, neither for reading nor for writing,
// whatever the interface is called.
func TestNetnsForeignSysfs(t *testing.T) {
	ns := knobtest.NewNetNS(t) // with the /sys of the process
	ns.Do(t, func() {
		c, err := nl.Dial()
		if err == nil {
			err = errors.Join(c.AddVeth("v0.100", "v1", -1), c.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	b := ns.Backend(t, live.New())
	for _, id := range []knob.ID{"queue:lo/rx-0/rps_cpus", "queue:v1/rx-0/rps_cpus", "link:lo/threaded",
		"link:v1/gro_flush_timeout"} {
		_, err := b.Read(t.Context(), id)
		if !errors.Is(err, knob.ErrNotSupported) || errors.Is(err, fs.ErrNotExist) ||
			!strings.Contains(err.Error(), "another network namespace") {
			t.Errorf("read %s: %v", id, err)
		}
		if err := b.Write(t.Context(), id, "0"); !errors.Is(err, knob.ErrNotSupported) {
			t.Errorf("write %s: %v", id, err)
		}
	}
	if _, err := b.Read(t.Context(), "queue:eth9/rx-0/rps_cpus"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read of a missing file: %v", err)
	}
}

// mq is left alone, and so is what a kind alone would not bring back.
func TestNetnsRootsThatStay(t *testing.T) {
	f := fileFixture(t)
	write := func(v knob.Value) error { return f.Backend.Write(t.Context(), "qdisc:v1/root", v) }
	if runtime.NumCPU() > 1 {
		if err := write("mq"); err != nil {
			t.Fatal(err)
		}
		// Only an undo may, which nothing checks before.
		err := knob.NewDryRun(f.Backend).Write(t.Context(), "qdisc:v1/root", "pfifo")
		if !errors.Is(err, knob.ErrNotSupported) || !strings.Contains(err.Error(), "children") {
			t.Errorf("replace mq: %v", err)
		}
		if err := write("mq"); err != nil {
			t.Errorf("mq anew: %v", err)
		}
	}
	var err error
	if _, e := f.Backend.Read(t.Context(), "qdisc:v0.100/root"); e != nil {
		t.Error(e)
	}
	// noqueue goes away and comes back, as an undo needs it.
	for _, v := range []knob.Value{"pfifo", "noqueue"} {
		if err = f.Backend.Write(t.Context(), "qdisc:v0.100/root", v); err != nil {
			t.Error(err)
		}
		if got, err := f.Backend.Read(t.Context(), "qdisc:v0.100/root"); err != nil || got != v {
			t.Errorf("root reads %q, %v; want %q", got, err, v)
		}
	}
}
