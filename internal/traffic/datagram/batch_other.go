//go:build !linux

package datagram

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Probe reports that datagrams go one by one on this system.
func Probe() Support {
	err := &sys.UnsupportedError{Feature: "udp offloads"}
	return Support{Send: err, Receive: err}
}

// sendBatch has one way only.
func (s *Socket) sendBatch(o SendOptions) (Batch, int, error) {
	if o.Batch != BatchAuto && o.Batch != BatchSingle {
		return "", 0, fmt.Errorf("send in batches (%s): %w", o.Batch, sys.ErrNotSupported)
	}
	return BatchSingle, 1, nil
}

// pace is not supported.
func (s *Socket) pace(int, float64) error {
	return fmt.Errorf("pace by the kernel: %w", sys.ErrNotSupported)
}

func sendMethod(Batch) string    { return "write, net poller" }
func receiveMethod(Batch) string { return "read, net poller" }

// outbox is one packet.
type outbox struct {
	conn    *net.UDPConn
	payload []byte
}

func (s *Socket) newOutbox(_ Batch, bytes, _ int) *outbox {
	return &outbox{s.conn, engine.Pattern(bytes)}
}

func (o *outbox) slot(int) []byte { return o.payload }

func (o *outbox) send(int, int) (int, error) {
	if _, err := o.conn.Write(o.payload); err != nil {
		return 0, err
	}
	return 1, nil
}

func (o *outbox) first(int, int) int { return 1 }

func (o *outbox) plain() {}

// judge returns what an error of send means.
func (o *outbox) judge(err error) judgement {
	switch {
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ENETUNREACH):
		return dropped
	case errors.Is(err, syscall.ECONNREFUSED):
		return again
	case errors.Is(err, syscall.EMSGSIZE):
		return tooLong
	}
	return fatal
}

// message is what one receiving call returned.
type message struct {
	payload      []byte
	segmentBytes int
	truncated    bool
	arrivedNanos int64
	drops        uint32
}

// inbox is one buffer.
type inbox struct {
	conn    *net.UDPConn
	payload []byte
	bytes   int
	got     int
}

// newInbox makes the buffer one byte longer than the longest datagram, to recognise longer ones.
func (s *Socket) newInbox(o ReceiveOptions) (*inbox, Batch, error) {
	if o.Batch != BatchAuto && o.Batch != BatchSingle {
		return nil, "", fmt.Errorf("receive in batches (%s): %w", o.Batch, sys.ErrNotSupported)
	}
	return &inbox{conn: s.conn, payload: make([]byte, o.Bytes+1), bytes: o.Bytes}, BatchSingle, nil
}

func (i *inbox) receive() (int, error) {
	if err := i.conn.SetReadDeadline(time.Now().Add(wakeEvery)); err != nil {
		return 0, err
	}
	n, err := i.conn.Read(i.payload)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, sys.ErrTimeout
	}
	if err != nil {
		return 0, err
	}
	i.got = n
	return 1, nil
}

// rest does nothing: with one packet per call every packet wakes the thread.
func (i *inbox) rest(int, bool) {}

func (i *inbox) message(int) message {
	return message{payload: i.payload[:i.got], truncated: i.got > i.bytes}
}

// judge returns what an error of receive means: again or fatal.
func (i *inbox) judge(err error) judgement {
	if errors.Is(err, net.ErrClosed) {
		return fatal
	}
	return again // what the network reported about an earlier packet
}

// dropCount counts nothing: these systems do not report drops.
type dropCount struct{}

func (d *dropCount) begin(*Socket) bool                          { return false }
func (d *dropCount) note(uint32) int64                           { return 0 }
func (d *dropCount) measure()                                    {}
func (d *dropCount) read(*Socket) (total, measured, after int64) { return 0, 0, 0 }
