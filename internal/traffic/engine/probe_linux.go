package engine

import (
	"errors"
	"net"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// probeMethods sends probeBytes from one socket to another by the given methods.
func probeMethods(send SendMethod, receive ReceiveMethod) error {
	near, far, err := loopback()
	if err != nil {
		return err
	}
	defer near.Close()
	defer far.Close()
	from, call, err := newSource(send, near)
	if err != nil {
		return err
	}
	defer from.close()
	return probeSource(from, call, near, far, receive, probePatience)
}

// probeSource sends probeBytes out of one source and compares what arrives at the other end within
// some time.
func probeSource(from source, call int, near, far *Conn, receive ReceiveMethod, within time.Duration) error {
	p := &Phase{}
	quota := NewQuota(probeBytes)
	sender := New(Sender, p, &streamSender{conn: near, from: from, call: call, limit: quota,
		woken: make(chan struct{}, 1)})
	r := &streamReceiver{conn: far, call: truncateBytes, in: make([]byte, sampleBytes), check: newVerifier(false),
		truncate: receive == ReceiveTruncate, gather: lowWater{off: true}}
	receiver := New(Receiver, p, r)

	ended := make(chan error, 1)
	go func() {
		err := sender.Run(-1)
		if err != nil {
			_ = near.CloseWrite() // a way to send that this host refuses is known at once, without a wait for its data
		}
		ended <- err
	}()
	var err error
	for i := 0; receiver.Bytes.Load() < probeBytes && err == nil && receiver.Now() < within; i++ {
		// Where all bytes are copied, every byte is compared; truncation must be right about what
		// it skips, so every second call copies.
		r.check.dueAt = 0
		if r.truncate && i%2 == 1 {
			r.check.dueAt = probeBytes
		}
		err = r.round(receiver)
	}
	p.Set(Stopped)
	sender.Wake()
	// The sender's error explains more than the missing data.
	if sendErr := <-ended; sendErr != nil && !errors.Is(err, ErrCorrupt) {
		return sendErr
	}
	if err == nil && receiver.Bytes.Load() < probeBytes {
		err = errUnverified
	}
	return err
}

// The best of at most this many laps, of this much time each, counts: other load on the machine can
// only make a lap slower.
const (
	raceLaps = 5
	raceTime = 8 * time.Millisecond
)

// race returns what a byte costs by either method over loopback, in nanoseconds of this process's
// CPU time for both ends; 0 if it fails. Wall time would show the other load of the machine. Where
// the CPU is the limit both rank the methods the same, and elsewhere only the cost matters. It ends
// early once the outcome is plain, see settled: all laps take 80 ms of CPU time, a twentieth of
// what a stream of a second takes.
func race(one, other SendMethod) (costOne, costOther float64) {
	best := func(so, lap float64) float64 {
		if lap > 0 && (so == 0 || lap < so) {
			return lap
		}
		return so
	}
	for lap := range raceLaps {
		costOne = best(costOne, raceLap(one))
		costOther = best(costOther, raceLap(other))
		if settled(costOne, costOther, lap+1) {
			break
		}
	}
	return costOne, costOther
}

func raceLap(send SendMethod) (nanosPerByte float64) {
	near, far, err := loopback()
	if err != nil {
		return 0
	}
	defer far.Close()
	p := &Phase{}
	sender, err := newStreamSender(p, near, send, StreamOptions{})
	if err != nil {
		near.Close()
		return 0
	}
	defer sender.Close()
	r := &streamReceiver{conn: far, call: truncateBytes, in: make([]byte, copyBytes), check: newVerifier(true),
		truncate: true, gather: lowWater{conn: far}}
	receiver := New(Receiver, p, r)
	used := cpuTime()
	ended := make(chan struct{})
	go func() {
		_ = sender.Run(-1) // an end that fails sends nothing more
		_ = near.CloseWrite()
		close(ended)
	}()
	for err == nil && receiver.Now() < raceTime {
		err = r.round(receiver)
	}
	used = cpuTime() - used
	p.Set(Stopped)
	far.Close() // the sender sleeps for space that the receiver no longer makes
	<-ended
	if n := receiver.Bytes.Load(); n > 0 {
		return float64(used.Nanoseconds()) / float64(n)
	}
	return 0
}

func cpuTime() time.Duration {
	user, system := sys.ProcessTimes()
	return user + system
}

// loopback returns one TCP connection of this host with itself.
func loopback() (near, far *Conn, err error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		// A host may have IPv6 only.
		if l, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv6loopback}); err != nil {
			return nil, nil, err
		}
	}
	defer l.Close()
	a, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		return nil, nil, err
	}
	b, err := l.AcceptTCP()
	if err != nil {
		_ = a.Close() // nothing was sent on it
		return nil, nil, err
	}
	if near, err = Adopt(a, ConnOptions{}); err != nil {
		_ = b.Close() // as above
		return nil, nil, err
	}
	if far, err = Adopt(b, ConnOptions{}); err != nil {
		near.Close()
		return nil, nil, err
	}
	return near, far, nil
}
