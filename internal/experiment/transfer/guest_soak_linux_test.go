//go:build soak

package transfer

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// TestGuestSmallRing: a real e1000 with a ring of 80 frames is emptied every 2 ms. One read of
// 64 KiB is 46 frames, one of 128 KiB is 91. The sweep names that size.
func TestGuestSmallRing(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	s := newServer(t, 1<<20)
	sh(t, "ethtool -G "+s.near+" rx 80")
	sh(t, "ethtool -C "+s.near+" rx-usecs 2000")
	p := plan()
	p.Direct, p.Size = true, 1<<20
	r := swept(t, s, &bench{opened(t, p)}, p, Options{Factors: []Factor{ReadSize},
		Sizes: []int64{32 << 10, 64 << 10, 128 << 10, 256 << 10}, Card: Card{Name: s.near, MTU: 1500, Ring: 80}})
	if r.LossesFrom != 128<<10 {
		t.Errorf("losses from %d", r.LossesFrom)
	}
	for _, size := range []int64{32 << 10, 64 << 10, 128 << 10} {
		if x := pointOf(t, r, size); x.Fits == nil || *x.Fits != (size < 128<<10) || (x.OutOfOrder > 0) == *x.Fits {
			t.Errorf("%+v", x)
		}
	}
}

// TestGuestLongPath: 300 ms away, and a client with four slots. The sweep starts from 64 KiB on one
// connection, of which 256 KiB are in flight, and keeps large reads and several connections: each
// begins with a small window, and a read of a few megabytes never leaves its slow start.
func TestGuestLongPath(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	const slots = "/sys/module/nfs/parameters/max_session_slots"
	before, err := os.ReadFile(slots)
	must(t, err)
	must(t, put(slots, "4"))
	defer func() { must(t, put(slots, strings.TrimSpace(string(before)))) }()
	s := newServer(t, 1<<20)
	// Ring and netem hold whatever is in flight: nothing is lost, so the delay is the matter.
	sh(t, "ethtool -G "+s.near+" rx 4096")
	s.in("tc qdisc add dev " + s.card + " root netem delay 300ms limit 100000")
	must(t, put("/proc/sys/net/ipv4/tcp_rmem", "4096 1048576 16777216"))
	s.call(func() error { return put("/proc/sys/net/ipv4/tcp_wmem", "4096 1048576 16777216") })
	p := plan()
	p.Base.ReadSize, p.Base.ReadAhead, p.Size = 64<<10, 8<<20, 4<<20
	p.Segment, p.Patience = 20*time.Second, time.Minute // the whole file in each segment
	r := swept(t, s, &bench{opened(t, p)}, p, Options{Factors: []Factor{ReadSize, Connections}, Sizes: []int64{1 << 20},
		Card: Card{Name: s.near, MTU: 1500, Ring: 4096}})
	if r.Best.ReadSize != 1<<20 || r.Best.Connections < 2 {
		t.Errorf("best %+v", r.Best)
	}
	if f := r.Outcome.Final; f == nil || f.Low <= 1 {
		t.Errorf("final %v", f)
	}
}

// TestGuestVersions: the versions of the protocol are distinguished, as granted. This kernel
// refuses datagrams, and the sweep says so; it is not the server that refuses.
func TestGuestVersions(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	s := newServer(t, 1<<20)
	p := plan()
	b := opened(t, p)
	for _, version := range []string{"4.0", "4.1", "4.2"} {
		e, err := b.Try(t.Context(), mount.Spec{Source: p.Base.Source, Version: version})
		if err != nil || e.Version != version || e.Protocol != "tcp" {
			t.Errorf("asked for %s: %+v, %v", version, e, err)
		}
	}
	for _, c := range []struct {
		version, protocol string
		want              error
	}{{"3", "udp", syscall.EINVAL}, {"4.2", "udp", syscall.EINVAL}, {"4.9", "tcp", syscall.EINVAL}} {
		_, err := b.Try(t.Context(), mount.Spec{Source: p.Base.Source, Version: c.version, Protocol: c.protocol})
		t.Logf("note: NFS %s over %s: %v", c.version, c.protocol, err)
		if !errors.Is(err, c.want) {
			t.Errorf("NFS %s over %s: %v, want %v", c.version, c.protocol, err, c.want)
		}
	}
	h := &asked{layer: b, base: mount.Spec{Source: p.Base.Source, Version: "3"}, tried: map[string]error{}}
	_, err := h.Apply(t.Context(), "", knob.Setting{Knob: knobOf(p.Base.Source, Protocol), Value: "udp"})
	t.Logf("note: %v", err)
	if !errors.Is(err, knob.ErrNotSupported) {
		t.Errorf("udp: %v", err)
	}
	must(t, b.Close(t.Context()))
	unmounted(t)
	if names := s.files(); len(names) > 0 {
		t.Errorf("left in the export: %q", names)
	}
}
