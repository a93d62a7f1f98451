package nl

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// What is held on the kernel of this machine is held on Debian's too. One of the tests compares all links of the machine it runs on with what
// ethtool(8) and ip(8) say of them: here these are the cards.
func TestGuestOtherKernel(t *testing.T) {
	guesttest.Others(t, "^TestNetns")
}

// models are the cards of a guest.
var models = []string{"e1000", "e1000-82545em", "e1000e", "virtio-net-pci", "vmxnet3"}

// Of cards that are up, ethtool(8) says the same of what a veth or a tap has not: driver, bus, speed, pause, private flags, counters.
func TestGuestAgreesAboutCards(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c := dialled(t)
	n := 0
	for _, model := range models {
		name := guesttest.Interface(t, model)
		must(t, c.SetUp(name))
		n += agree(t, c, name)
		same := func(what, ours, theirs string) {
			t.Helper()
			n++
			if ours != theirs {
				t.Errorf("%s of %s: %q here, %q there", what, model, ours, theirs)
			}
		}
		d, err := c.Driver(name)
		must(t, err)
		out, _ := otherSays(t, "ethtool", "-i", name)
		info := pairs(out)
		same("driver", d.Driver, info["driver"])
		same("version", d.Version, info["version"])
		same("firmware", d.Firmware, info["firmware-version"])
		same("bus", d.Bus, info["bus-info"])

		p, err := c.Pause(name)
		out, ok := otherSays(t, "ethtool", "-a", name)
		if ok != (err == nil) {
			t.Errorf("pause of %s: %v here, %q there", model, err, out)
		}
		if ok {
			same("pause", fmt.Sprint(onOff(p.Autoneg), onOff(p.Rx), onOff(p.Tx)), fmt.Sprint(pairs(out)["Autonegotiate"], pairs(out)["RX"], pairs(out)["TX"]))
		}
		flags, err := c.PrivateFlags(name)
		out, ok = otherSays(t, "ethtool", "--show-priv-flags", name)
		if ok != (err == nil) {
			t.Errorf("private flags of %s: %v here, %q there", model, err, out)
		}
		for flag, value := range pairs(out) {
			same("flag "+flag, onOff(flags[flag]), value)
		}
		n += agreeAboutSpeed(t, c, model, name)
		n += agreeAboutCounters(t, c, model, name)
	}
	t.Logf("note: %d values of five cards agree with ethtool and ip", n)
	if n < 300 {
		t.Errorf("only %d values compared", n)
	}
}

func onOff(b bool) string { return map[bool]string{true: "on", false: "off"}[b] }

// dialled is a client in the namespace of the process.
func dialled(t *testing.T) *Client {
	t.Helper()
	c, err := Dial()
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// agreeAboutSpeed compares what was negotiated. A link that has only just come up may be asked before it is and after, so that both are asked until
// neither has changed in between.
func agreeAboutSpeed(t *testing.T, c *Client, model, name string) (n int) {
	t.Helper()
	for {
		speed, duplex, err := c.LinkMode(name)
		out, _ := otherSays(t, "ethtool", name)
		again, _, _ := c.LinkMode(name)
		if speed != again {
			continue
		}
		said := pairs(out)
		theirs, _ := strconv.ParseFloat(strings.TrimSuffix(said["Speed"], "Mb/s"), 64) // 0 for "Unknown!"
		if speed != theirs*1e6 || theirs != 0 && !strings.EqualFold(duplex, said["Duplex"]) {
			t.Errorf("link of %s: %v bit/s %s, %v here, %s %s there", model, speed, duplex, err, said["Speed"], said["Duplex"])
		}
		return 2
	}
}

// agreeAboutCounters compares all counters of a driver. They go on counting, so that the other tool's number is to be between two of ours.
func agreeAboutCounters(t *testing.T, c *Client, model, name string) (n int) {
	t.Helper()
	before, err := c.Statistics(name)
	must(t, err)
	out, _ := otherSays(t, "ethtool", "-S", name)
	after, err := c.Statistics(name)
	must(t, err)
	for key, value := range pairs(out) {
		theirs, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue // a heading
		}
		low, ok := before[key]
		if !ok || theirs < low || theirs > after[key] {
			t.Errorf("%s of %s: %d and then %d here, %d there", key, model, low, after[key], theirs)
		}
		n++
	}
	if n != len(before) {
		t.Errorf("counters of %s: %d here, %d there", model, len(before), n)
	}
	return n
}

// The statistics of queueing disciplines are those that tc(8) prints, on a card that has dropped packets.
func TestGuestAgreesWithTc(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c := dialled(t)
	name := guesttest.Interface(t, "e1000")
	must(t, c.SetUp(name))
	must(t, c.AddAddress(name, "10.9.0.1/24"))
	must(t, c.ReplaceTBF(name, TBF{RateBitsPerSecond: 8e3, BurstBytes: 3000, LimitBytes: 3000}))
	defer func() { must(t, c.ReplaceQdisc(name, "pfifo_fast")) }()
	conn, err := net.Dial("udp4", "10.9.0.255:9") // the broadcast address, which has no neighbour to be asked for
	must(t, err)
	defer func() { _ = conn.Close() }()
	for range 40 {
		_, _ = conn.Write(make([]byte, 1000)) // a full queue may be reported as ENOBUFS
	}
	for _, model := range models[1:] {
		must(t, c.SetUp(guesttest.Interface(t, model)))
	}
	type counts struct {
		Kind       string `json:"kind"`
		Handle     string `json:"handle"`
		Dev        string `json:"dev"`
		Root       bool   `json:"root"`
		Bytes      uint64 `json:"bytes"`
		Packets    uint64 `json:"packets"`
		Drops      uint64 `json:"drops"`
		Overlimits uint64 `json:"overlimits"`
		Requeues   uint64 `json:"requeues"`
	}
	// What is queued now moves between two questions; what was counted only grows.
	ask := func() map[string]counts {
		qs, err := c.Qdiscs()
		must(t, err)
		out := make(map[string]counts)
		for _, q := range qs {
			out[fmt.Sprint(q.Interface, q.Kind, q.Handle, q.Parent == rootHandle)] = counts{
				Bytes: q.Bytes, Packets: q.Packets, Drops: q.Drops, Overlimits: q.Overlimits, Requeues: q.Requeues,
			}
		}
		return out
	}
	before := ask()
	text, _ := otherSays(t, "tc", "-s", "-j", "qdisc", "show")
	after := ask()
	var theirs []counts
	must(t, json.Unmarshal([]byte(text), &theirs))
	n, dropped := 0, false
	for _, q := range theirs {
		major, _, _ := strings.Cut(q.Handle, ":")
		handle, err := strconv.ParseUint(major, 16, 16)
		must(t, err)
		key := fmt.Sprint(q.Dev, q.Kind, uint32(handle)<<16, q.Root)
		low, ok := before[key]
		if q.Kind == "noqueue" || !q.Root && handle == 0 {
			continue // without a number of its own it is one of several
		}
		high := after[key]
		if !ok || q.Bytes < low.Bytes || q.Bytes > high.Bytes || q.Packets < low.Packets || q.Packets > high.Packets || q.Drops < low.Drops ||
			q.Drops > high.Drops || q.Overlimits < low.Overlimits || q.Overlimits > high.Overlimits || q.Requeues < low.Requeues || q.Requeues > high.Requeues {
			t.Errorf("%s: %+v and then %+v here, %+v there", key, low, high, q)
		}
		dropped = dropped || q.Drops > 0 && q.Dev == name
		n++
	}
	if n < len(models) || !dropped {
		t.Errorf("%d disciplines compared, drops among them: %v; %s", n, dropped, text)
	}
}
