package live_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// carrier waits until a link is up and its driver reports a speed.
func carrier(t *testing.T, c *nl.Client, name string) {
	t.Helper()
	if err := c.SetUp(name); err != nil {
		t.Fatal(err)
	}
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		link, err := c.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if speed, _, err := ethtool.New(c).LinkMode(name); err != nil {
			t.Fatal(err)
		} else if link.Carrier && speed != 0 {
			return
		}
		select {
		case <-poll.C:
		case <-t.Context().Done():
			t.Fatalf("%s does not come up", name)
		}
	}
}

// byDriver returns the links of a driver.
func byDriver(t *testing.T, c *nl.Client, driver string) (out []string) {
	t.Helper()
	links, err := c.Links()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if d, err := ethtool.New(c).Driver(l.Name); err == nil && d.Driver == driver {
			out = append(out, l.Name)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no card with the driver %s", driver)
	}
	return out
}

// The mode of a link is set as one: what is refused leaves it as it was, also where the driver
// forgets that it negotiated before it refuses.
func TestGuestLinkMode(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	for _, driver := range []string{"e1000", "e1000e"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel() // A link takes seconds to negotiate.
			client(t, func(c *nl.Client) error { linkMode(t, c, byDriver(t, c, driver)[0]); return nil })
		})
	}
}

func linkMode(t *testing.T, c *nl.Client, name string) {
	t.Helper()
	b := live.New()
	id := knob.ID("ethtool:" + name + "/link.mode")
	carrier(t, c, name)
	for _, step := range []struct {
		write, read knob.Value
		is          error
	}{
		{"auto 100baseT/Full", "auto 100baseT/Full", nil},
		{"auto", "auto", nil},
		{"1000/full", "auto 1000baseT/Full", nil}, // what the driver makes of it
		{"auto", "auto", nil},
		{"10000/full", "auto", knob.ErrInvalid},
		{"1000/half", "auto", knob.ErrInvalid}, // the driver gives up negotiating before it looks
		{"auto no/Such", "auto", knob.ErrInvalid},
		{"fast", "auto", knob.ErrInvalid},
	} {
		if strings.Contains(string(step.write), "/") {
			carrier(t, c, name)
		}
		err := b.Write(t.Context(), id, step.write)
		for err != nil && strings.Contains(err.Error(), "the link did not come up") {
			carrier(t, c, name) // A guest on a busy machine: the write gave up, it did not fail.
			err = b.Write(t.Context(), id, step.write)
		}
		if !errors.Is(err, step.is) {
			t.Errorf("%s=%s: %v, want %v", id, step.write, err, step.is)
		}
		if v, err := b.Read(t.Context(), id); err != nil || v != step.read {
			t.Errorf("%s after %s reads %q, %v; want %q", id, step.write, v, err, step.read)
		}
	}
}

// A forced speed is refused on a link that is down, because the driver cannot show whether it comes
// up. The undo of what took the link down writes it all the same.
func TestGuestForcedModeOfLinkDown(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	client(t, func(c *nl.Client) error {
		name := byDriver(t, c, "e1000")[0]
		b, id := live.New(), knob.ID("ethtool:"+name+"/link.mode")
		carrier(t, c, name)
		if err := c.SetDown(name); err != nil {
			t.Fatal(err)
		}
		if err := b.CheckWrite(t.Context(), id, "1000/full"); !errors.Is(err, knob.ErrNotSupported) {
			t.Errorf("check: %v", err)
		}
		if err := b.Write(t.Context(), id, "1000/full"); err == nil || !strings.Contains(err.Error(), "did not come up") {
			t.Errorf("write: %v", err)
		}
		carrier(t, c, name)
		if v, err := b.Read(t.Context(), id); v != "auto 1000baseT/Full" || err != nil { // what the driver makes of it
			t.Errorf("the link is up with %q, %v", v, err)
		}
		return b.Write(t.Context(), id, "auto")
	})
}

// The table of a NIC with several queues is dealt out as asked, and the driver's own comes back.
func TestGuestRSS(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c, err := nl.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	b := live.New()
	name := byDriver(t, c, "vmxnet3")[0]
	carrier(t, c, name) // the driver makes its queues when it comes up
	id := knob.ID("ethtool:" + name + "/rss.indirection")
	original, err := b.Read(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		write, read knob.Value
		is          error
	}{
		{"equal 1", "equal 1", nil},
		{"equal 9", "equal 1", knob.ErrInvalid}, // more queues than the NIC has
		{"weight 0 0", "equal 1", knob.ErrInvalid},
		{"0,1", "equal 1", knob.ErrInvalid},
		{"equal 1 start 1", "equal 1 start 1", nil},
		{original, original, nil},
		{"equal 1", "equal 1", nil},
		{"default", original, nil},
	} {
		if err := b.Write(t.Context(), id, step.write); !errors.Is(err, step.is) {
			t.Errorf("%s: %v, want %v", step.write, err, step.is)
		}
		if v, err := b.Read(t.Context(), id); err != nil || v != step.read {
			t.Errorf("after %s: %q, %v; want %q", step.write, v, err, step.read)
		}
	}
	r, err := ethtool.New(c).RSS(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Write(t.Context(), id, "weight 3 1"); err != nil {
		t.Error(err)
	}
	after, err := ethtool.New(c).RSS(name)
	share := 0
	for _, q := range after.Indirection {
		if q == 0 {
			share++
		}
	}
	if err != nil || 4*share != 3*len(r.Indirection) {
		t.Errorf("weights 3 and 1: %d of %d entries name queue 0, %v", share, len(r.Indirection), err)
	}
	// The key goes out and back; one of another length is refused.
	id = knob.ID("ethtool:" + name + "/rss.key")
	if key, err := b.Read(t.Context(), id); err == nil {
		if err := b.Write(t.Context(), id, key); err != nil && !errors.Is(err, knob.ErrNotSupported) {
			t.Errorf("key: %v", err)
		}
		if err := b.Write(t.Context(), id, key+"00"); !errors.Is(err, knob.ErrInvalid) {
			t.Errorf("a longer key: %v", err)
		}
	} else if !errors.Is(err, knob.ErrNotSupported) {
		t.Error(err)
	}
}

// What is held of disciplines is held on a kernel that has all of them.
func TestGuestQdiscs(t *testing.T) {
	guesttest.Others(t, "^TestNetnsQdiscParameters$|^TestNetnsKernelsOwnQdiscComesBack$|"+
		"^TestNetnsQdiscParameterUnderMQ$|^TestNetnsShapersStay$", "//concurrent")
}

// The kernel's own mq of a NIC with two queues takes a parameter on both, and is the kernel's own
// again afterwards.
func TestGuestKernelsOwnMQ(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c, err := nl.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	b := live.New()
	name := byDriver(t, c, "virtio_net")[0]
	tree := func() []nl.QdiscNode {
		nodes, err := c.QdiscTree(name)
		if err != nil {
			t.Fatal(err)
		}
		return nodes
	}
	if err := c.SetUp(name); err != nil {
		t.Fatal(err)
	}
	before := tree()
	if len(before) != 3 || before[0].Kind != "mq" || before[0].Handle != 0 || before[1].Kind != "fq_codel" {
		t.Fatalf("want the kernel's own mq over two fq_codel: %+v", before)
	}
	for parameter, values := range map[knob.ID][2]knob.Value{"target": {"7000", "4999"}, "quantum": {"300", "1514"},
		"flows": {"256", "1024"}} {
		id := knob.ID("qdisc:"+name+"/fq_codel.") + parameter
		for i, v := range values {
			if err := b.Write(t.Context(), id, v); err != nil {
				t.Fatalf("%s=%s: %v", id, v, err)
			}
			if got, err := b.Read(t.Context(), id); err != nil || got != v {
				t.Errorf("%s: wrote %s, reads %s, %v", id, v, got, err)
			}
			same := len(tree()) == len(before)
			for j, n := range tree() {
				same = same && n.Kind == before[j].Kind && n.Handle == 0 &&
					string(n.Options) == string(before[j].Options)
			}
			if same != (i == 1) {
				t.Errorf("%s=%s: the kernel's own: %v; %+v", id, v, same, tree())
			}
		}
		// One child after the other is changed; the refusal of the first leaves all as they were.
		if parameter == "quantum" {
			err := b.Write(t.Context(), id, "2000000")
			if !errors.Is(err, knob.ErrInvalid) || !strings.Contains(err.Error(), "from 1 to 1048576") {
				t.Errorf("a quantum that is too large: %v", err)
			}
			if now := tree(); now[0].Handle != 0 {
				t.Errorf("a refused write leaves %+v", now)
			}
		}
	}
}

// Byte queue limits of a real transmit queue are set and go back; the kernel refuses what is no
// number of bytes, and nothing is stored of it.
func TestGuestByteQueueLimits(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c, err := nl.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	b := live.New()
	queue := knob.ID("queue:" + byDriver(t, c, "e1000")[0] + "/tx-0/")
	for id, v := range map[knob.ID]knob.Value{queue + "bql_limit_max": "30000", queue + "bql_limit_min": "3000"} {
		original, err := b.Read(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []knob.Value{v, original} {
			if err := b.Write(t.Context(), id, want); err != nil {
				t.Errorf("%s=%s: %v", id, want, err)
			}
			if got, err := b.Read(t.Context(), id); err != nil || got != want {
				t.Errorf("%s: wrote %s, reads %s, %v", id, want, got, err)
			}
		}
		for _, bad := range []knob.Value{"-1", "99999999999", "much"} {
			if err := b.Write(t.Context(), id, bad); !errors.Is(err, knob.ErrInvalid) {
				t.Errorf("%s=%s: %v", id, bad, err)
			}
		}
		if got, err := b.Read(t.Context(), id); err != nil || got != original {
			t.Errorf("%s after refusals: %s, %v; want %s", id, got, err, original)
		}
	}
}
