package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Receive takes over a socket of package net and takes its datagrams one after the other until ctx
// ends; then it closes the socket and returns nil. Every second it calls sweep, unless that is nil,
// also while datagrams arrive.
//
// A socket of package net wakes the Go scheduler for each datagram, which costs four to six times
// what a program in C spends on it. This one has a thread that sleeps in the socket, and naps while
// datagrams arrive fast.
func Receive(ctx context.Context, conn *net.UDPConn, take func(Datagram), sweep func()) error {
	_ = conn.SetReadBuffer(ReceiveBufferBytes) // less is slower, not wrong
	fd, err := sys.TakeOverDatagram(conn)
	if err != nil && ctx.Err() != nil {
		return nil // the caller closed it when ctx ended, before this call
	}
	if err != nil {
		return fmt.Errorf("receive datagrams: %w", err)
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		// Of an unconnected socket it fails with ENOTCONN and still works, now and later:
		// inet_shutdown of Linux wakes its sleepers on purpose.
		_ = sys.Shutdown(fd)
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken // or it could hit a descriptor that was reused
		}
		_ = sys.Close(fd) // an error of close loses no data of UDP
	}()
	// The timeout is the clock of the sweeps while nothing arrives.
	if err := sys.SetTimeout(fd, sweepEvery); err != nil {
		return fmt.Errorf("receive datagrams: %w", err)
	}
	p := newPump(fd)
	defer p.cool()
	return p.run(ctx, take, sweep)
}

// pump receives the datagrams of one socket.
type pump struct {
	fd     int
	box    *sys.Inbox
	answer func(p []byte, to netip.AddrPort) error
	window int // receive buffer in bytes, of which a datagram takes more than its payload

	hot    bool // datagrams arrive faster than a nap
	misses int  // naps in a row in which nothing arrived
	cold   int  // calls that still wait in the socket after a miss
	// ends what a pump needs while it naps; nil: it was cold for the last second
	giveBack func()
	// upper bound of a nap; halved when the socket dropped something, and longer again when it did
	// not
	longest time.Duration
	nap     time.Duration // before the next call
	drops   uint32
	last    time.Time // end of the last call

	singles   int // datagrams since singlesAt, while cold
	singlesAt time.Time
}

// How a pump rests. Each nap ends with a wake-up, so it should last for several datagrams. It must
// not fill the receive buffer: a sender that makes up for a delay is ten times as fast for a while.
const (
	inboxMessages = 32
	longestNap    = 4 * time.Millisecond
	shortestNap   = 20 * time.Microsecond // below it a nap is not worth its timer
	leastNap      = 50 * time.Microsecond // the bound after many drops
	napGrowth     = 64                    // a call without a drop makes the bound longer by one in napGrowth
	napShare      = 16                    // a nap may fill this share of the receive buffer: one in napShare
	bookBytes     = 768                   // what the kernel accounts for a small datagram besides its payload
	// A pump that waits in the socket is hot when this many datagrams arrive within manyTime, 1600 a
	// second.
	manySingles = 16
	manyTime    = 10 * time.Millisecond
	// after this number of misses in a row, or more, a pump waits in the socket for 1<<mostMisses
	// calls
	mostMisses = 5
	// oldest bounds how long a datagram may have waited in the socket: a step of the wall clock must
	// not date it back further
	oldest = time.Second
)

func newPump(fd int) *pump {
	p := &pump{fd: fd, box: sys.NewInbox(inboxMessages, datagramBytes), longest: longestNap, last: time.Now()}
	p.box.KeepSources()
	p.answer = func(b []byte, to netip.AddrPort) error { return sys.SendTo(fd, b, to) }
	// Without either, the naps are short or the drops unseen; all datagrams arrive the same.
	p.window, _ = sys.ReceiveBufferBytes(fd)
	_ = sys.SetReceiveDrops(fd)
	return p
}

// run is [Receive].
func (p *pump) run(ctx context.Context, take func(Datagram), sweep func()) error {
	swept := time.Now()
	var retry incoming.Retry
	for {
		waits := !p.hot
		n, err := p.receive()
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err == nil:
			retry.Done()
			p.hand(n, now, take)
			p.rest(n, now)
		case errors.Is(err, sys.ErrTimeout):
			if waits {
				p.cool() // a second of silence
			}
		default:
			// most often the ICMP error about an answer of ours
			if err := retry.After(ctx, err); err != nil && ctx.Err() == nil {
				return fmt.Errorf("receive datagrams: %w", err)
			}
		}
		if sweep != nil && (now.Sub(swept) >= sweepEvery || waits && errors.Is(err, sys.ErrTimeout)) {
			sweep()
			swept = now
		}
	}
}

// receive naps if datagrams arrive fast, and else waits for one.
func (p *pump) receive() (int, error) {
	if !p.hot {
		return p.box.Receive(p.fd, inboxMessages, true)
	}
	if p.nap >= shortestNap {
		engine.SleepUntil(sys.Monotonic() + p.nap)
	}
	n, err := p.box.Receive(p.fd, inboxMessages, false)
	if n > 0 {
		p.misses = 0
		return n, err
	}
	// A sender of bursts leaves nothing for a nap, which then only adds a wake-up to each burst.
	p.hot = false
	p.misses = min(p.misses+1, mostMisses)
	p.cold = 1 << p.misses
	return n, err
}

// hand passes the n datagrams of a call on.
func (p *pump) hand(n int, now time.Time, take func(Datagram)) {
	wall := now.UnixNano()
	for i := range n {
		m := p.box.Message(i)
		at := now
		if m.ArrivedNanos != 0 {
			at = now.Add(-min(max(time.Duration(wall-m.ArrivedNanos), 0), oldest))
		}
		if m.Drops != p.drops && m.Drops != 0 {
			p.drops = m.Drops
			p.longest = max(p.longest/2, leastNap)
		}
		take(Datagram{m.Payload, m.From, at, p.answer})
	}
}

// rest chooses the nap after a call with n datagrams.
func (p *pump) rest(n int, now time.Time) {
	since := now.Sub(p.last)
	p.last = now
	if !p.hot && p.cold > 0 {
		p.cold--
		return
	}
	if p.hot = p.hot || n > 1 || p.many(now); !p.hot {
		return
	}
	p.warm()
	p.longest = min(p.longest+p.longest/napGrowth, longestNap)
	if n == inboxMessages {
		p.nap = 0 // more is waiting
		return
	}
	booked := 0
	for i := range n {
		booked += len(p.box.Message(i).Payload) + bookBytes
	}
	// as long as these took to arrive, times the share of the buffer that they took
	p.nap = min(time.Duration(float64(since)*float64(p.window)/napShare/float64(booked)), p.longest)
}

// many reports whether a pump that waits for each datagram has enough of them for naps.
func (p *pump) many(now time.Time) bool {
	if p.singles++; p.singles < manySingles {
		return false
	}
	fast := now.Sub(p.singlesAt) < manyTime
	p.singles, p.singlesAt = 0, now
	return fast
}

// warm prepares for naps: the kernel notes when datagrams arrive, and the thread keeps a logical
// processor of its own while it naps, or each nap would cost three times as much.
func (p *pump) warm() {
	if p.giveBack == nil {
		_ = sys.SetReceiveTimes(p.fd, true) // else they arrive when they are read
		p.giveBack = engine.LendProcessors(1)
	}
}

// cool ends warm: while a socket wants times, every packet of the host costs a clock reading.
func (p *pump) cool() {
	if p.giveBack != nil {
		_ = sys.SetReceiveTimes(p.fd, false)
		p.giveBack()
		p.giveBack = nil
	}
}
