package nl_test

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// The tests of this package must pass on Debian's kernel too. One of them compares all links of its
// machine with the output of ethtool(8) and ip(8); in the guest these are the emulated NICs.
func TestGuestOtherKernel(t *testing.T) {
	guesttest.Others(t, "^TestNetns")
}

// models are the NICs of a guest.
var models = []string{"e1000", "e1000-82545em", "e1000e", "virtio-net-pci", "vmxnet3"}

// dialled returns a client in the namespace of the process.
func dialled(t *testing.T) *nl.Client {
	t.Helper()
	c, err := nl.Dial()
	nltest.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The statistics of queueing disciplines equal those that tc(8) prints, on a NIC that has dropped
// packets.
func TestGuestAgreesWithTc(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c := dialled(t)
	name := guesttest.Interface(t, "e1000")
	nltest.Must(t, c.SetUp(name))
	nltest.Must(t, c.AddAddress(name, "10.9.0.1/24"))
	nltest.Must(t, c.ReplaceTBF(name, nl.TBF{RateBitsPerSecond: 8e3, BurstBytes: 3000, LimitBytes: 3000}))
	defer func() { nltest.Must(t, c.ReplaceQdisc(name, "pfifo_fast")) }()
	conn, err := net.Dial("udp4", "10.9.0.255:9") // the broadcast address, which needs no neighbour
	nltest.Must(t, err)
	defer func() { _ = conn.Close() }()
	dropping := func() bool {
		qs, err := c.Qdiscs()
		nltest.Must(t, err)
		return slices.ContainsFunc(qs, func(q nl.Qdisc) bool { return q.Interface == name && q.Drops > 0 })
	}
	// The driver takes seconds to find its link. Until then packets are lost before they reach a
	// queue.
	for patience := time.Now().Add(time.Minute); !dropping(); {
		if time.Now().After(patience) {
			t.Fatal("no packet is dropped on " + name)
		}
		_, _ = conn.Write(make([]byte, 1000)) // a full queue may be reported as ENOBUFS
	}
	for _, model := range models[1:] {
		nltest.Must(t, c.SetUp(guesttest.Interface(t, model)))
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
	// The queue lengths change between two requests; the counters only grow.
	ask := func() map[string]counts {
		qs, err := c.Qdiscs()
		nltest.Must(t, err)
		out := make(map[string]counts)
		for _, q := range qs {
			out[fmt.Sprint(q.Interface, q.Kind, q.Handle, q.Parent == nl.RootParent)] = counts{
				Bytes: q.Bytes, Packets: q.Packets, Drops: q.Drops, Overlimits: q.Overlimits, Requeues: q.Requeues,
			}
		}
		return out
	}
	before := ask()
	text, _ := nltest.OtherSays(t, "tc", "-s", "-j", "qdisc", "show")
	after := ask()
	var theirs []counts
	nltest.Must(t, json.Unmarshal([]byte(text), &theirs))
	n, dropped := 0, false
	for _, q := range theirs {
		major, _, _ := strings.Cut(q.Handle, ":")
		handle, err := strconv.ParseUint(major, 16, 16)
		nltest.Must(t, err)
		key := fmt.Sprint(q.Dev, q.Kind, uint32(handle)<<16, q.Root)
		low, ok := before[key]
		if q.Kind == "noqueue" || !q.Root && handle == 0 {
			continue // without its own handle it is one of several
		}
		high := after[key]
		if !ok || q.Bytes < low.Bytes || q.Bytes > high.Bytes || q.Packets < low.Packets || q.Packets > high.Packets ||
			q.Drops < low.Drops ||
			q.Drops > high.Drops || q.Overlimits < low.Overlimits || q.Overlimits > high.Overlimits ||
			q.Requeues < low.Requeues || q.Requeues > high.Requeues {
			t.Errorf("%s: here %+v, then %+v; tc reports %+v", key, low, high, q)
		}
		dropped = dropped || q.Drops > 0 && q.Dev == name
		n++
	}
	if n < len(models) || !dropped {
		t.Errorf("%d disciplines compared, drops among them: %v; %s", n, dropped, text)
	}
}
