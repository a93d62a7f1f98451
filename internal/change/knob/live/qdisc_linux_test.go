package live_test

import (
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/tc"
)

// qdiscPairs are two values of every parameter, of every kind whose parameters are known. The first
// of each kind is the one that several writers fight over.
var qdiscPairs = map[string][]knobtest.Pair{
	"pfifo": {{Knob: "limit", A: "77", B: "500"}},
	"bfifo": {{Knob: "limit", A: "77000", B: "500000"}},
	"fq": {
		{Knob: "flow_limit", A: "50", B: "100"}, {Knob: "limit", A: "5000", B: "10000"},
		{Knob: "quantum", A: "4000", B: "3028"},
		{Knob: "initial_quantum", A: "20000", B: "15140"}, {Knob: "pacing", A: "off", B: "on"},
		{Knob: "maxrate", A: "800000000", B: "0"},
		{Knob: "buckets", A: "512", B: "1024"}, {Knob: "refill_delay", A: "20000", B: "40000"},
		{Knob: "orphan_mask", A: "511", B: "1023"},
		{Knob: "low_rate_threshold", A: "1000000", B: "550000"}, {Knob: "ce_threshold", A: "4000", B: "4294967295"},
		{Knob: "timer_slack", A: "20000", B: "10000"}, {Knob: "horizon", A: "5000000", B: "10000000"},
		{Knob: "horizon_drop", A: "off", B: "on"},
	},
	"fq_codel": {
		{Knob: "limit", A: "1000", B: "10240"}, {Knob: "target", A: "7000", B: "4999"},
		{Knob: "interval", A: "150000", B: "99999"},
		{Knob: "quantum", A: "300", B: "1514"}, {Knob: "ecn", A: "off", B: "on"},
		{Knob: "ce_threshold", A: "2000", B: "4294967295"},
		{Knob: "memory_limit", A: "8388608", B: "33554432"}, {Knob: "drop_batch", A: "32", B: "64"},
		{Knob: "flows", A: "256", B: "1024"}, // only by making it again
	},
	"cake": {
		{Knob: "bandwidth", A: "95000000", B: "0"}, {Knob: "diffserv", A: "besteffort", B: "diffserv3"},
		{Knob: "atm", A: "ptm", B: "noatm"},
		{Knob: "flowmode", A: "dual-srchost", B: "triple-isolate"}, {Knob: "overhead", A: "44", B: "raw"},
		{Knob: "rtt", A: "50000", B: "100000"},
		{Knob: "target", A: "2500", B: "5000"}, {Knob: "memlimit", A: "8388608", B: "0"},
		{Knob: "wash", A: "on", B: "off"}, {Knob: "mpu", A: "84", B: "0"}, {Knob: "ingress", A: "on", B: "off"},
		{Knob: "ack-filter", A: "ack-filter", B: "no-ack-filter"}, {Knob: "split-gso", A: "off", B: "on"},
		{Knob: "fwmark", A: "255", B: "0"},
	},
}

// put makes a discipline at the root of a link of a namespace, as another program would.
func put(t *testing.T, ns *knobtest.NetNS, name string, n nl.QdiscNode) (err error) {
	t.Helper()
	n.Parent = nl.RootParent
	ns.Do(t, func() {
		var c *nl.Client
		if c, err = nl.Dial(); err == nil {
			err = errors.Join(c.PutQdisc(name, n), c.Close())
		}
	})
	return err
}

func qdiscTree(t *testing.T, ns *knobtest.NetNS, name string) (nodes []nl.QdiscNode) {
	t.Helper()
	ns.Do(t, func() {
		client(t, func(c *nl.Client) (err error) {
			nodes, err = c.QdiscTree(name)
			return err
		})
	})
	return nodes
}

// The suite holds for the parameters of every kind that this kernel has. Where it lacks a kind the
// answers say so, which is the contract there.
func TestNetnsQdiscParameters(t *testing.T) {
	for _, kind := range tc.Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // Each check has a namespace of its own.
			ns := world(t)
			if err := put(t, ns, "v1", nl.QdiscNode{Kind: kind}); errors.Is(err, syscall.ENOENT) {
				qdiscIsAbsent(t, ns.Backend(t, live.New()), kind)
				return
			} else if err != nil {
				t.Fatal(err)
			}
			knobtest.Suite(t, func(t *testing.T) knobtest.Fixture { return qdiscFixture(t, kind) })
		})
	}
}

func qdiscIsAbsent(t *testing.T, b knob.Backend, kind string) {
	t.Helper()
	err := b.Write(t.Context(), "qdisc:v1/root", knob.Value(kind))
	if !errors.Is(err, knob.ErrInvalid) || !strings.Contains(err.Error(), "that the running kernel has or can load") {
		t.Errorf("a kind that this kernel lacks: %v", err)
	}
	for _, p := range qdiscPairs[kind] {
		id := knob.ID("qdisc:v1/"+kind+".") + p.Knob
		if _, err := b.Read(t.Context(), id); !errors.Is(err, knob.ErrNotSupported) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("read %s: %v", id, err)
		}
		if err := b.Write(t.Context(), id, p.A); !errors.Is(err, knob.ErrNotSupported) {
			t.Errorf("write %s: %v", id, err)
		}
	}
}

func qdiscFixture(t *testing.T, kind string) knobtest.Fixture {
	ns := world(t)
	if err := put(t, ns, "v1", nl.QdiscNode{Kind: kind}); err != nil {
		t.Fatal(err)
	}
	foreignHandle := uint32(0x100 << 16)
	prefix := knob.ID("qdisc:v1/" + kind + ".")
	var pairs []knobtest.Pair
	for _, p := range qdiscPairs[kind] {
		pairs = append(pairs, knobtest.Pair{Knob: prefix + p.Knob, A: p.A, B: p.B})
	}
	return knobtest.Fixture{
		Backend:  ns.Backend(t, live.New()),
		Writable: pairs,
		Messy:    []knobtest.Messy{{Knob: pairs[0].Knob, Text: " " + pairs[0].A + "\n", ReadBack: pairs[0].A}},
		Invalid: []knob.Setting{
			{Knob: pairs[0].Knob, Value: "-1"}, {Knob: pairs[0].Knob, Value: "many"},
			{Knob: pairs[0].Knob, Value: "99999999999999999999"},
		},
		ReadOnly:    knob.Setting{Knob: "sysctl:net.ipv4.tcp_available_congestion_control", Value: "reno"},
		Missing:     []knob.ID{"qdisc:eth9/" + knob.ID(kind) + "." + qdiscPairs[kind][0].Knob},
		Unsupported: "qdisc:v1/" + knob.ID(kind) + ".no_such_parameter",
		Foreign: func(t *testing.T, s knob.Setting) {
			_, parameter, _ := strings.Cut(s.Knob.Attribute(), ".")
			options, err := tc.Whole(kind, qdiscTree(t, ns, "v1")[0].Options, parameter, string(s.Value))
			if err == nil {
				foreignHandle += 1 << 16
				err = put(t, ns, "v1", nl.QdiscNode{Kind: kind, Handle: foreignHandle, Options: options})
			}
			if err != nil {
				t.Error(err)
			}
		},
		Device: pairs[0].Knob,
		Vanish: func(t *testing.T) { deleteLink(t, ns, "v0.100") },
	}
}

// The catalogue and the table above have every parameter that package tc knows.
func TestEveryQdiscParameterIsKnown(t *testing.T) {
	for _, kind := range tc.Kinds() {
		for _, name := range tc.Parameters(kind) {
			d, ok := knob.Catalogue().Lookup(knob.ID("qdisc:eth0/" + kind + "." + name))
			if !ok {
				t.Errorf("%s.%s is not in the catalogue", kind, name)
			}
			if words := tc.Words(kind, name); !slices.Equal(words, d.Choices) {
				t.Errorf("%s.%s: choices %q, want %q", kind, name, d.Choices, words)
			}
			tried := slices.ContainsFunc(qdiscPairs[kind], func(p knobtest.Pair) bool { return string(p.Knob) == name })
			// nat needs connection tracking, offload_horizon a NIC that paces, and autorate-ingress
			// lets the bandwidth beside it move.
			if !tried && name != "nat" && name != "offload_horizon" && name != "autorate-ingress" {
				t.Errorf("%s.%s is not tried", kind, name)
			}
		}
	}
}

// After an undo a link has the discipline again that the kernel gave it: the same kind and options,
// and the handle 0.
func TestNetnsKernelsOwnQdiscComesBack(t *testing.T) {
	ns := world(t)
	b := ns.Backend(t, live.New())
	for _, name := range []string{"v1", "v0.100"} {
		before := qdiscTree(t, ns, name)
		original, err := b.Read(t.Context(), knob.ID("qdisc:"+name+"/root"))
		if err != nil {
			t.Fatal(err)
		}
		id := knob.ID("qdisc:" + name + "/root")
		for _, step := range []knob.Setting{
			{Knob: id, Value: "pfifo"},
			{Knob: knob.ID("qdisc:" + name + "/pfifo.limit"), Value: "77"},
			{Knob: knob.ID("qdisc:" + name + "/pfifo.limit"), Value: "1000"},
			{Knob: id, Value: "pfifo_fast"},
			{Knob: id, Value: original},
		} {
			if err := b.Write(t.Context(), step.Knob, step.Value); err != nil {
				t.Fatalf("%s=%s: %v", step.Knob, step.Value, err)
			}
		}
		after := qdiscTree(t, ns, name)
		if len(before) != len(after) {
			t.Errorf("%s: %+v became %+v", name, before, after)
			continue
		}
		for i := range before {
			if before[i].Kind != after[i].Kind || after[i].Handle != 0 ||
				!slices.Equal(before[i].Options, after[i].Options) {
				t.Errorf("%s: %+v became %+v", name, before[i], after[i])
			}
		}
	}
}

// A parameter of the children of a kernel's own mq is set on all queues, and afterwards all is as
// the kernel had it.
func TestNetnsQdiscParameterUnderMQ(t *testing.T) {
	if runtime.NumCPU() < 2 {
		return // a veth has one queue here, and the suite has covered it
	}
	ns := world(t)
	b := ns.Backend(t, live.New())
	if err := put(t, ns, "v1", nl.QdiscNode{Kind: "mq", Handle: 1 << 16}); err != nil {
		t.Fatal(err)
	}
	// Children that the kernel can make anywhere: a fifo for each.
	for i := range uint32(2) {
		ns.Do(t, func() {
			client(t, func(c *nl.Client) error {
				return c.PutQdisc("v1", nl.QdiscNode{Kind: "pfifo", Handle: (i + 2) << 16, Parent: 1<<16 | (i + 1),
					Options: []byte{100, 0, 0, 0}})
			})
		})
	}
	children := func() (limits []byte) {
		for _, n := range qdiscTree(t, ns, "v1") {
			if n.Kind == "pfifo" {
				limits = append(limits, n.Options[0])
			}
		}
		return limits
	}
	const id = knob.ID("qdisc:v1/pfifo.limit")
	if runtime.NumCPU() > 2 {
		return // more queues than the two that got a fifo
	}
	if v, err := b.Read(t.Context(), id); err != nil || v != "100" {
		t.Fatalf("read: %q, %v", v, err)
	}
	if err := b.Write(t.Context(), id, "55"); err != nil || !slices.Equal(children(), []byte{55, 55}) {
		t.Errorf("write: %v, queues hold %v", err, children())
	}
	// Queues that differ have no common value, and nothing is written to them: an undo could not
	// bring the difference back.
	ns.Do(t, func() {
		client(t, func(c *nl.Client) error {
			return c.PutQdisc("v1", nl.QdiscNode{Kind: "pfifo", Handle: 9 << 16, Parent: 1<<16 | 1,
				Options: []byte{9, 0, 0, 0}})
		})
	})
	if _, err := b.Read(t.Context(), id); !errors.Is(err, knob.ErrNotSupported) ||
		!strings.Contains(err.Error(), "differ") {
		t.Errorf("queues that differ: %v", err)
	}
	if err := b.Write(t.Context(), id, "70"); !errors.Is(err, knob.ErrNotSupported) || slices.Contains(children(), 70) {
		t.Errorf("write to queues that differ: %v, they hold %v", err, children())
	}
}

// Shapers and trees that a user built are neither read as fifos nor replaced; they stay the same
// byte for byte.
func TestNetnsShapersStay(t *testing.T) {
	ns := world(t)
	b := ns.Backend(t, live.New())
	ns.Do(t, func() {
		client(t, func(c *nl.Client) error {
			return c.ReplaceTBF("v1", nl.TBF{RateBitsPerSecond: 1e8, BurstBytes: 100000, LimitBytes: 200000})
		})
	})
	// struct tc_htb_glob: version 3, rate2quantum 10, default class 0x12, two counters; in
	// TCA_HTB_INIT.
	htb := []byte{24, 0, 2, 0, 3, 0, 0, 0, 10, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := put(t, ns, "v0.100", nl.QdiscNode{Kind: "htb", Handle: 1 << 16, Options: htb}); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"v1": "tbf", "v0.100": "htb"} {
		before := qdiscTree(t, ns, name)
		id := knob.ID("qdisc:" + name)
		if v, err := b.Read(t.Context(), id+"/root"); err != nil || string(v) != kind {
			t.Errorf("root of %s: %q, %v", name, v, err)
		}
		if err := b.Write(t.Context(), id+"/root", "pfifo"); !errors.Is(err, knob.ErrNotSupported) ||
			!strings.Contains(err.Error(), "would be lost") {
			t.Errorf("replace %s: %v", kind, err)
		}
		for _, attribute := range []knob.ID{"/pfifo.limit", "/fq.limit", knob.ID("/" + kind + ".limit")} {
			if _, err := b.Read(t.Context(), id+attribute); !errors.Is(err, knob.ErrNotSupported) {
				t.Errorf("%s: %v", id+attribute, err)
			}
		}
		// htb counts packets among its options (direct_pkts of struct tc_htb_glob); the bytes
		// in front of the counter are settings.
		settled := func(n nl.QdiscNode) []byte {
			if n.Kind == "htb" {
				return n.Options[:20]
			}
			return n.Options
		}
		after := qdiscTree(t, ns, name)
		if len(before) == 0 || !slices.EqualFunc(before, after, func(x, y nl.QdiscNode) bool {
			return x.Kind == y.Kind && x.Handle == y.Handle && slices.Equal(settled(x), settled(y))
		}) {
			t.Errorf("%s: %+v became %+v", name, before, after)
		}
	}
}
