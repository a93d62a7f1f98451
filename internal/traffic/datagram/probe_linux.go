package datagram

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Probe tries splitting and merging over loopback and compares every byte that arrives, once per
// process.
func Probe() Support { return probeOnce() }

var probeOnce = sync.OnceValue(func() Support {
	var s Support
	if s.Send = exchange(false); s.Send == nil {
		s.Receive = exchange(true)
	} else {
		s.Receive = s.Send // without one the other cannot be tried
	}
	return s
})

// Shape of the message that is tried: full datagrams and a shorter last one.
const (
	probeSegment  = 100
	probeSegments = 5
	probeBytes    = probeSegment*(probeSegments-1) + probeSegment/3
	probePatience = time.Second
)

// exchange sends one message of several datagrams to itself, and reads it back merged or one by
// one.
func exchange(merged bool) error {
	local := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	in, err := sys.OpenDatagram(local, netip.AddrPort{}, sys.DatagramOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = sys.Close(in) }() // only a probe: a missing option shows below
	to, err := sys.LocalAddress(in)
	if err != nil {
		return err
	}
	if merged {
		if err := sys.SetReceiveMerged(in, true); err != nil {
			return err
		}
	}
	if err := sys.SetTimeout(in, wakeEvery); err != nil {
		return err
	}
	out, err := sys.OpenDatagram(netip.AddrPort{}, to, sys.DatagramOptions{})
	if errors.Is(err, unix.ENETUNREACH) {
		return nil // a namespace without loopback: nothing speaks against it
	}
	if err != nil {
		return err
	}
	defer func() { _ = sys.Close(out) }()
	if err := sys.ProbeSegments(out); err != nil {
		return err
	}
	want := engine.Pattern(probeBytes)
	o := sys.NewOutbox(1)
	o.Set(0, want, probeSegment)
	if _, err := o.Send(out, 1); err != nil {
		return fmt.Errorf("try udp gso: %w", err)
	}
	return compare(in, want)
}

// compare reads until all of want has arrived.
func compare(in int, want []byte) error {
	box := sys.NewInbox(probeSegments, messageBytes)
	end := time.Now().Add(probePatience)
	for len(want) > 0 && time.Now().Before(end) {
		n, err := box.Receive(in, probeSegments, true)
		if errors.Is(err, sys.ErrTimeout) {
			continue
		}
		if err != nil {
			return fmt.Errorf("try udp gro: %w", err)
		}
		for i := range n {
			m := box.Message(i)
			size := len(m.Payload)
			if m.SegmentBytes > 0 {
				size = m.SegmentBytes
			}
			if size > probeSegment || !bytes.HasPrefix(want, m.Payload) {
				return fmt.Errorf("try udp gso and gro: %w", ErrCorrupt)
			}
			want = want[len(m.Payload):]
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("try udp gso and gro: %d bytes did not arrive: %w", len(want), ErrCorrupt)
	}
	return nil
}
