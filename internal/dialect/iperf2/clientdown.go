package iperf2

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// A client that wants datagrams (-u -R) sends the first datagram of a test, with its settings, and
// the server sends to the address that it came from. The last datagram of the server has a negative
// number; it comes once, and nothing answers it.

// downQuiet is how long a server may send nothing before the test is over: the datagram that ends
// it may be lost.
const downQuiet = 2 * time.Second

// downStream is one stream that the server sends.
type downStream struct {
	socket   *datagram.Socket
	worker   *engine.Worker
	receiver *datagram.Receiver
	end      end
}

// end notes the datagram that ends a stream. The receiving thread writes it, and who waits for that
// thread may read it.
type end struct {
	number uint64 // its absolute value; 0: it did not come
	at     time.Duration
}

// Count takes every datagram.
func (e *end) Count(m datagram.Mark, _ int, arrived time.Duration) {
	if m.End && e.number == 0 {
		e.number, e.at = m.Sequence, arrived
	}
}

// openDown makes the receivers of a UDP test downwards, and requests the datagrams.
func (t *Test) openDown(ctx context.Context, spec traffic.Spec, port int, m Means) error {
	asked := settingsOf(spec, port)
	if spec.RatePacketsPerSec > 0 {
		asked.rateBitsSec = spec.RatePacketsPerSec * float64(8*spec.PacketBytes) / float64(spec.Streams)
	}
	t.header = newDatagramHeader(asked, 0)
	for i := range spec.Streams {
		socket, err := m.Socket(ctx, i, port)
		if err != nil {
			return err
		}
		t.sockets = append(t.sockets, socket)
		s := &downStream{socket: socket}
		s.worker, s.receiver, err = datagram.NewReceiver(m.In, socket, datagram.ReceiveOptions{
			Batch: datagram.Batch(spec.Batch), Header: downHeader{t.header}, Accountant: &s.end})
		if err != nil {
			return err
		}
		t.down, t.receivers = append(t.down, s), append(t.receivers, s.worker)
	}
	go t.follow(m.In)
	return nil
}

// follow requests the datagrams until they come, and ends the receivers when all of them have come.
func (t *Test) follow(phase *engine.Phase) {
	request := make([]byte, t.packetBytes)
	copy(request, t.header.front[:])
	var arrived int64
	quiet, over := time.Now().Add(downQuiet), false
	tick := time.NewTicker(reportWait)
	defer tick.Stop()
	for {
		now, open := int64(0), 0
		for _, s := range t.down {
			n := s.worker.Packets.Load()
			now += n
			select {
			case <-s.receiver.Ended():
				continue
			default:
				open++
			}
			if n == 0 && !over {
				mark{id: 1, sent: time.Duration(time.Now().UnixNano())}.put(request)
				_ = s.socket.Send(request) // repeated
			}
		}
		if now != arrived {
			arrived, quiet = now, time.Now().Add(downQuiet)
		}
		over = over || open == 0 || time.Now().After(quiet)
		if over {
			phase.Set(engine.Stopped) // again and again: the conductor may start the test only now
		}
		select {
		case <-t.stop:
			return
		case <-tick.C:
		}
	}
}

// downHeader is that of the datagrams of a server, which sends no settings.
type downHeader struct{ *datagramHeader }

// Bytes returns the length of a mark.
func (downHeader) Bytes() int { return bareMarkBytes }

// finishDown adds what arrived to the result. The numbers show what the server sent.
func (t *Test) finishDown(r *traffic.Result) error {
	r.UDP = &traffic.Datagrams{}
	duplicates, reordered, silent := uint64(0), uint64(0), 0
	for _, s := range t.down {
		got := s.receiver.Received()
		if got.AllPackets == 0 {
			silent++
			continue
		}
		// The datagram that ends the test is no part of it. Where it was lost, what was lost right
		// before it is not known.
		sent, last := got.HighestSequence, got.LastAt
		if s.end.number > 0 {
			sent, last = max(sent, s.end.number-1), s.end.at
		}
		r.UDP.Received += uint64(got.UniquePackets)
		r.UDP.Sent += max(sent, uint64(got.UniquePackets))
		duplicates += uint64(got.Duplicates)
		reordered += uint64(got.Reordered)
		r.UDP.JitterSeconds += got.JitterSeconds / float64(len(t.down))
		r.UDP.Batch = string(got.Batch)
		r.Bytes += got.Bytes
		r.DurationSeconds = max(r.DurationSeconds, (last - got.FirstAt).Seconds())
	}
	if silent > 0 {
		return fmt.Errorf("%w: %d of %d streams of datagrams did not come: the server may refuse them, or a filter "+
			"drops them", traffic.ErrPeerGone, silent, len(t.down))
	}
	r.UDP.Lost, r.UDP.Duplicates, r.UDP.Reordered = r.UDP.Sent-r.UDP.Received, &duplicates, &reordered
	return nil
}
