package live_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) {
	reloadPart() // a writer or a guard of TestGuestReload
	guesttest.Main(m)
}

// What is held on the kernel of this machine is held on Debian's too, which is some years older or
// younger.
func TestGuestOtherKernel(t *testing.T) {
	// A dry run asks a kernel nothing that a live backend does not, and disciplines have a test of
	// their own (TestGuestQdiscs).
	// Concurrent writers test locks of this package, which no kernel changes. What an undo would
	// leave needs a macvlan, and limits of IPv4 that came with Linux 6.3.
	guesttest.Others(t, "^TestNetns", "DryRun", "Qdisc", "^TestNetnsShapersStay$", "^TestNetnsUndoable$", "/concurrent")
}

// card is what the suite does to one driver. Knobs are written without their subject: "ring.rx" is
// ethtool:IF/ring.rx, "link/mtu" is link:IF/mtu.
type card struct {
	model       string
	writable    [][3]string // knob, A, B
	rounded     [][3]string // knob, what is asked, what the driver makes of it
	invalid     [][2]string
	missing     []string
	unsupported string
	device      string // the knob that is requested when the NIC is gone
}

// driverCards are the drivers with the numbers that each of them rounds, clips and refuses.
var driverCards = []card{
	{
		// The 82540EM. Descriptors in steps of eight, 48 at least (E1000_MIN_TXD and
		// REQ_TX_DESCRIPTOR_MULTIPLE in e1000.h); no coalescing before the 82545.
		model: "e1000",
		writable: [][3]string{
			{"ring.rx", "512", "256"}, {"ring.tx", "128", "256"}, {"feature.tx-tcp-segmentation", "off", "on"},
			{"feature.rx-gro", "off", "on"}, {"link/mtu", "9000", "1500"},
		},
		rounded: [][3]string{{"ring.rx", "100", "104"}, {"ring.tx", "5", "48"}},
		invalid: [][2]string{{"ring.rx", "4097"}, {"ring.rx", "many"}, {"link/mtu", "16111"},
			{"feature.rx-gro", "perhaps"}},
		missing:     []string{"feature.no-such-feature"},
		unsupported: "coalesce.rx-usecs",
		device:      "ring.rx",
	},
	{
		// The interrupt rate is kept as a number of interrupts per second with its two lowest bits
		// cleared (e1000_set_coalesce), and read back as microseconds.
		model:    "e1000-82545em",
		writable: [][3]string{{"coalesce.rx-usecs", "1000", "3"}, {"ring.tx", "4096", "256"}},
		rounded: [][3]string{{"coalesce.rx-usecs", "7000", "7142"}, {"coalesce.rx-usecs", "999", "1000"},
			{"ring.rx", "4095", "4096"}},
		invalid: [][2]string{{"coalesce.rx-usecs", "10001"}, {"coalesce.rx-usecs", "5"},
			{"coalesce.rx-usecs", "-1"}},
		missing:     []string{"coalesce.rx-moons"},
		unsupported: "channels.combined",
		device:      "coalesce.rx-usecs",
	},
	{
		// The 82574. As above, with 64 descriptors at least, and private flags.
		model: "e1000e",
		writable: [][3]string{
			{"coalesce.rx-usecs", "1000", "3"}, {"ring.rx", "512", "256"}, {"ring.tx", "4096", "256"},
			{"feature.rx-checksum", "off", "on"}, {"link/mtu", "9000", "1500"},
		},
		rounded: [][3]string{{"coalesce.rx-usecs", "7000", "7142"}, {"ring.rx", "100", "104"},
			{"ring.rx", "1", "64"}},
		invalid: [][2]string{{"coalesce.rx-usecs", "10001"}, {"coalesce.rx-usecs", "2"}, {"ring.tx", "5000"},
			{"link/mtu", "9213"}},
		missing:     []string{"flag.no-such-flag"},
		unsupported: "eee",
		device:      "coalesce.rx-usecs",
	},
	{
		// Its queues are its channels.
		model: "virtio-net-pci",
		writable: [][3]string{{"channels.combined", "1", "2"}, {"ring.rx", "128", "256"},
			{"feature.tx-tcp-segmentation", "off", "on"}, {"link/mtu", "9000", "1500"}},
		invalid:     [][2]string{{"channels.combined", "3"}, {"channels.combined", "0"}, {"link/mtu", "65536"}},
		unsupported: "pause.rx",
		device:      "channels.combined",
	},
	{
		// Descriptors in steps of 32 (VMXNET3_RING_SIZE_ALIGN), for receiving in steps of 32 ×
		// buffers per packet: see TestGuestRoundingFollowsMTU.
		model: "vmxnet3",
		writable: [][3]string{{"ring.rx", "512", "1024"}, {"ring.tx", "1024", "512"},
			{"feature.rx-lro", "off", "on"}, {"link/mtu", "1400", "1500"}},
		rounded:     [][3]string{{"ring.tx", "100", "128"}, {"ring.rx", "1000", "1024"}},
		invalid:     [][2]string{{"ring.tx", "4097"}, {"link/mtu", "9001"}},
		unsupported: "coalesce.rx-usecs",
		device:      "ring.tx",
	},
}

// on returns a knob its subject.
func on(name, short string) knob.ID {
	if attribute, ok := strings.CutPrefix(short, "link/"); ok {
		return knob.ID("link:" + name + "/" + attribute)
	}
	return knob.ID("ethtool:" + name + "/" + short)
}

// fixture is a NIC that is up, with settings that it has after being plugged in; the NIC of a check
// before may have been taken away.
func (c card) fixture(t *testing.T) knobtest.Fixture {
	t.Helper()
	name := guesttest.Plug(t, c.model)
	client(t, func(k *nl.Client) error { return k.SetUp(name) })
	f := knobtest.Fixture{
		Backend: live.New(),
		// The first one is fought over by several writers. A number that another program sets back
		// before it is read back looks as if the driver had not taken it, so that this is no knob
		// of ethtool.
		Writable:    []knobtest.Pair{{Knob: on(name, "link/txqueuelen"), A: "500", B: "1000"}},
		ReadOnly:    knob.Setting{Knob: "sysctl:net.ipv4.tcp_available_congestion_control", Value: "reno"},
		Missing:     []knob.ID{on("eth99", c.device)},
		Unsupported: on(name, c.unsupported),
		Foreign:     foreignProgram,
		Device:      on(name, c.device),
		Vanish:      func(t *testing.T) { guesttest.Unplug(t, name) },
	}
	for _, w := range c.writable {
		f.Writable = append(f.Writable, knobtest.Pair{Knob: on(name, w[0]), A: knob.Value(w[1]), B: knob.Value(w[2])})
	}
	for _, r := range c.rounded {
		f.Messy = append(f.Messy, knobtest.Messy{Knob: on(name, r[0]), Text: knob.Value(r[1]),
			ReadBack: knob.Value(r[2])})
	}
	for _, v := range c.invalid {
		f.Invalid = append(f.Invalid, knob.Setting{Knob: on(name, v[0]), Value: knob.Value(v[1])})
	}
	for _, m := range c.missing {
		f.Missing = append(f.Missing, on(name, m))
	}
	return f
}

// foreignProgram writes as an administrator would.
func foreignProgram(t *testing.T, s knob.Setting) {
	t.Helper()
	name, value := s.Knob.Subject(), string(s.Value)
	group, key, _ := strings.Cut(s.Knob.Attribute(), ".")
	options := map[string]string{"ring": "-G", "coalesce": "-C", "channels": "-L", "feature": "-K"}
	args := []string{"ethtool", options[group], name, key, value}
	if s.Knob.Kind() == knob.KindLink {
		args = []string{"ip", "link", "set", "dev", name, group, value}
	}
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	// Where there is nothing to change ethtool(8) fails, and reports that.
	if err != nil && !strings.Contains(string(out), "unmodified") {
		t.Errorf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// The suite holds on the drivers of real NICs. Concurrent writers test locks of this package, which
// no driver changes.
func TestGuestCards(t *testing.T) {
	if !guesttest.In(t, "//concurrent") {
		return
	}
	for _, c := range driverCards {
		t.Run(c.model, func(t *testing.T) { knobtest.Suite(t, c.fixture) })
	}
}

// On vmxnet3 a packet of a larger MTU takes several buffers, and the ring for receiving is a whole
// number of packets in steps of 32. What the driver makes of a number depends on another knob, so
// only reading it back shows the result.
func TestGuestRoundingFollowsMTU(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	name := guesttest.Plug(t, "vmxnet3")
	client(t, func(k *nl.Client) error { return k.SetUp(name) })
	b := live.New()
	for _, tc := range []struct{ mtu, ask, want knob.Value }{
		{"1500", "500", "512"}, {"9000", "500", "576"}, {"1500", "500", "512"},
	} {
		err := errors.Join(b.Write(t.Context(), on(name, "link/mtu"), tc.mtu),
			b.Write(t.Context(), on(name, "ring.rx"), "1024"),
			b.Write(t.Context(), on(name, "ring.rx"), tc.ask))
		if got, readErr := b.Read(t.Context(), on(name, "ring.rx")); err != nil || readErr != nil || got != tc.want {
			t.Errorf("MTU %s: asked for %s descriptors, got %s, %v, %v; want %s", tc.mtu, tc.ask, got, err,
				readErr, tc.want)
		}
	}
}

// The error for a value that a driver refuses has the driver's words or the kernel's.
func TestGuestRefusals(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	b := live.New()
	for _, tc := range []struct {
		model, knob string
		value       knob.Value
		is          error
		words       string
	}{
		{"e1000", "link/mtu", "16111", knob.ErrInvalid, "mtu greater than device maximum"},
		{"e1000", "ring.rx", "4097", knob.ErrInvalid, "4096"},
		{"e1000", "coalesce.rx-usecs", "100", knob.ErrNotSupported, "not supported"},
		{"e1000", "flag.legacy-rx", "on", knob.ErrNotSupported, "not supported"},
		{"e1000-82545em", "coalesce.rx-usecs", "10001", knob.ErrInvalid, "invalid argument"},
		{"e1000e", "eee", "on", knob.ErrNotSupported, "not supported"},
		{"e1000e", "coalesce.tx-usecs", "10", knob.ErrNotSupported, ""},
		{"virtio-net-pci", "channels.combined", "3", knob.ErrInvalid, "2"},
		// a split ring holds a power of two; the driver says it so
		{"virtio-net-pci", "ring.rx", "100", syscall.ENOMEM, "cannot allocate memory"},
		{"vmxnet3", "pause.rx", "on", knob.ErrNotSupported, "not supported"},
		{"vmxnet3", "channels.combined", "1", knob.ErrNotSupported, "not supported"},
	} {
		name := guesttest.Plug(t, tc.model)
		client(t, func(k *nl.Client) error { return k.SetUp(name) })
		before, unreadable := b.Read(t.Context(), on(name, tc.knob))
		err := b.Write(t.Context(), on(name, tc.knob), tc.value)
		if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s %s=%s: %v; want %v with %q", tc.model, tc.knob, tc.value, err, tc.is, tc.words)
			continue
		}
		if after, err := b.Read(t.Context(), on(name, tc.knob)); unreadable == nil && (err != nil || after != before) {
			t.Errorf("%s %s was %q and after a refusal is %q, %v", tc.model, tc.knob, before, after, err)
		}
		t.Logf("note: %s: %v", tc.model, err)
	}
}

// An interface whose name has a dot in it, as those of VLANs have, is the same one in the names of
// all kinds of knobs.
func TestGuestVLANNames(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	parent := guesttest.Plug(t, "e1000e")
	vlan := parent + ".100"
	program(t, "ip", "link", "add", "link", parent, "name", vlan, "type", "vlan", "id", "100")
	defer program(t, "ip", "link", "delete", vlan)
	program(t, "ip", "link", "set", parent, "up")
	program(t, "ip", "link", "set", vlan, "up")
	program(t, "ip", "address", "add", "10.9.0.1/24", "dev", vlan)
	b := live.New()
	slashed := strings.ReplaceAll(vlan, ".", "/")
	for _, tc := range []struct {
		id       string
		a, b     knob.Value
		theirs   []string // what says the same
		selector string   // in front of the value there
	}{
		{"sysctl:net.ipv4.conf." + slashed + ".rp_filter", "1", "2",
			[]string{"sysctl", "net.ipv4.conf." + slashed + ".rp_filter"}, "= "},
		{"sysctl:net/ipv6/conf/" + vlan + "/accept_ra", "0", "1",
			[]string{"sysctl", "net/ipv6/conf/" + vlan + "/accept_ra"}, "= "},
		{"sysctl:net.ipv4.neigh." + slashed + ".gc_stale_time", "120", "60",
			[]string{"sysctl", "net.ipv4.neigh." + slashed + ".gc_stale_time"}, "= "},
		{"link:" + vlan + "/mtu", "1400", "1500", []string{"ip", "link", "show", vlan}, "mtu "},
		{"link:" + vlan + "/txqueuelen", "77", "1000", []string{"ip", "link", "show", vlan}, "qlen "},
		{"ethtool:" + vlan + "/feature.rx-gro", "off", "on", []string{"ethtool", "-k", vlan},
			"generic-receive-offload: "},
		{"queue:" + vlan + "/rx-0/rps_cpus", "1", "0", nil, ""},
		{"qdisc:" + vlan + "/root", "pfifo", "noqueue", []string{"ip", "link", "show", vlan}, "qdisc "},
		{"route:10.9.0.0/24/initcwnd", "20", "0", nil, ""},
	} {
		id, err := knob.ParseID(tc.id)
		if err != nil {
			t.Error(err)
			continue
		}
		if id.Kind() != knob.KindRoute && id.Interface() != vlan {
			t.Errorf("%s acts on %q; want %s", id, id.Interface(), vlan)
		}
		for _, v := range []knob.Value{tc.a, tc.b} {
			if err := b.Write(t.Context(), id, v); err != nil {
				t.Error(err)
				continue
			}
			if got, err := b.Read(t.Context(), id); err != nil || got != v {
				t.Errorf("%s: wrote %q, reads %q, %v", id, v, got, err)
			}
			if tc.theirs == nil {
				continue
			}
			_, said, _ := strings.Cut(program(t, tc.theirs[0], tc.theirs[1:]...), tc.selector)
			if words := strings.Fields(said); len(words) == 0 || words[0] != string(v) {
				t.Errorf("%s: wrote %q, %s says %q", id, v, strings.Join(tc.theirs, " "), said)
			}
		}
	}
}

// Every setting of the network that sysctl(8) prints is read here under the name that it prints,
// with the same value.
func TestGuestAgreesWithSysctl(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	b := live.New()
	n := 0
	for line := range strings.Lines(program(t, "sysctl", "-a")) {
		name, theirs, ok := strings.Cut(line, " = ")
		// Random numbers, clocks and counts of existing objects are not settings.
		if !ok || !strings.HasPrefix(name, "net.") {
			continue
		}
		id, err := knob.ParseID("sysctl:" + name)
		if err != nil {
			t.Errorf("a name of sysctl(8): %v", err)
			continue
		}
		ours, err := b.Read(t.Context(), id)
		if err != nil || !slices.Equal(strings.Fields(string(ours)), strings.Fields(theirs)) {
			t.Errorf("%s: %q here, %v; %q there", id, ours, err, theirs)
		}
		n++
	}
	t.Logf("note: %d settings agree with sysctl -a", n)
	if n < 500 {
		t.Errorf("only %d settings compared", n)
	}
}

// program runs a program of others in the guest and gives what it said; the test goes on with an
// error.
func program(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
