package engine

import (
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/sys"
)

// Sizes of one system call, in bytes. 128 KiB keep the copy inside a second-level cache and make the cost of the call itself vanish beside it.
const (
	sendBytes    = 128 << 10
	receiveBytes = 128 << 10
)

// SendMethod is how a stream sender hands bytes to the kernel.
type SendMethod string

// The ways to send. Auto is the cheapest that the kernel has and the payload check allows.
const (
	SendAuto     SendMethod = ""
	SendCopy     SendMethod = "copy"     // write(2) from memory, as most programs do
	SendSendfile SendMethod = "sendfile" // sendfile(2) from a memfd: pages go by reference
	SendSplice   SendMethod = "splice"   // vmsplice(2) and splice(2): the same from memory of our own
)

// ReceiveMethod is how a stream receiver takes bytes from the kernel.
type ReceiveMethod string

// The ways to receive. Auto is the cheapest that the kernel has.
const (
	ReceiveAuto     ReceiveMethod = ""
	ReceiveCopy     ReceiveMethod = "copy"     // read(2) into memory, as a program that wants its data does
	ReceiveTruncate ReceiveMethod = "truncate" // MSG_TRUNC (tcp(7)): the kernel drops the bytes where they are; samples are still copied and compared
)

// StreamOptions say how a stream worker moves data. The zero value chooses by itself.
type StreamOptions struct {
	Send        SendMethod
	Receive     ReceiveMethod
	BufferBytes int // of one call; default 128 KiB
}

// NewStreamSender makes the worker that sends bulk data on conn as fast as it goes.
func NewStreamSender(p *Phase, conn *Conn, o StreamOptions) (*Worker, error) {
	w := New(Sender, p, &streamSender{conn: conn, out: Pattern(sendBytes)})
	w.Conn, w.Method = conn, string(SendCopy)
	return w, nil
}

// NewStreamReceiver makes the worker that receives bulk data on conn and counts them.
func NewStreamReceiver(p *Phase, conn *Conn, o StreamOptions) (*Worker, error) {
	w := New(Receiver, p, &streamReceiver{conn: conn, in: make([]byte, receiveBytes)})
	w.Conn, w.Method = conn, string(ReceiveCopy)
	return w, nil
}

type streamSender struct {
	conn *Conn
	out  []byte
}

func (s *streamSender) Wake()  { s.conn.Wake() }
func (s *streamSender) Close() { s.conn.Close() }

func (s *streamSender) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if err := s.round(w); err != nil {
			return err
		}
	}
	return nil
}

// round is one write of as much as the socket takes.
func (s *streamSender) round(w *Worker) error {
	// A timeout is no failure: it is the chance to look at the phase, which a peer with a closed window would otherwise keep us from.
	n, err := s.conn.write(s.out)
	w.Bytes.Add(int64(n))
	if err != nil && !errors.Is(err, sys.ErrTimeout) {
		return fmt.Errorf("send data: %w", err)
	}
	return nil
}

type streamReceiver struct {
	conn *Conn
	in   []byte
}

func (r *streamReceiver) Wake()  { r.conn.Wake() }
func (r *streamReceiver) Close() { r.conn.Close() }

func (r *streamReceiver) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if err := r.round(w); err != nil {
			return err
		}
	}
	return nil
}

// round is one read of whatever has arrived.
func (r *streamReceiver) round(w *Worker) error {
	n, err := r.conn.read(r.in)
	w.Bytes.Add(int64(n))
	if err != nil && !errors.Is(err, sys.ErrTimeout) {
		return fmt.Errorf("receive data: %w", err)
	}
	return nil
}
