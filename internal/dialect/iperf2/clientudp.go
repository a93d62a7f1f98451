package iperf2

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

// Requests for the report: the program sends one every 10 ms for two seconds, this client fewer.
const (
	reportTries = 20
	reportWait  = 100 * time.Millisecond
)

func (t *Test) openUDP(ctx context.Context, spec traffic.Spec, port int, m Means) error {
	t.packetBytes = spec.PacketBytes
	if spec.Direction == traffic.Down {
		return t.openDown(ctx, spec, port, m)
	}
	now := time.Now()
	// Marks carry the time of day, because a server may compare it with its own; workers stamp with
	// the monotonic clock.
	t.header = newDatagramHeader(settingsOf(spec, port), time.Duration(now.UnixNano())-sys.Monotonic())
	share := float64(spec.Streams)
	for i := range spec.Streams {
		s, err := m.Socket(ctx, i, port)
		if err != nil {
			return err
		}
		t.sockets = append(t.sockets, s)
		o := datagram.SendOptions{
			Bytes: spec.PacketBytes, BitRate: spec.RateBitsPerSec / share, PacketRate: spec.RatePacketsPerSec / share,
			Batch: datagram.Batch(spec.Batch), Header: t.header, First: 1, Every: datagram.BurstTime,
			PayloadBytes: spec.Bytes / int64(spec.Streams),
		}
		w, sender, err := datagram.NewSender(m.Out, s, o)
		if errors.Is(err, datagram.ErrBadOptions) {
			return fmt.Errorf("%w: %w", traffic.ErrBadSpec, err)
		}
		if err != nil {
			return err
		}
		t.senders, t.datagrams = append(t.senders, w), append(t.datagrams, sender)
	}
	if spec.Bytes > 0 {
		t.done = make(chan struct{})
		go func() {
			for _, s := range t.datagrams {
				select {
				case <-s.Idle():
				case <-t.stop:
					return
				}
			}
			close(t.done)
		}()
	}
	return nil
}

// Finish requests the server's report and adds it to the result. There is none for TCP tests.
func (t *Test) Finish(ctx context.Context, r *traffic.Result) error {
	if len(t.down) > 0 {
		return t.finishDown(r)
	}
	if len(t.datagrams) == 0 {
		return nil
	}
	r.UDP = &traffic.Datagrams{}
	silent, reordered := 0, uint64(0)
	for i, s := range t.sockets {
		sent := t.datagrams[i].Sent()
		got, err := t.ask(ctx, s, int64(sent.NextSequence))
		r.UDP.Sent += uint64(sent.AllPackets)
		if errors.Is(err, sys.ErrTimeout) {
			silent++
			continue
		}
		if err != nil {
			return err
		}
		// The server counts the datagram that ended the test, which is no part of it. The protocol
		// has no duplicates.
		received := uint64(max(0, got.datagrams-got.lost-1))
		r.UDP.Received += min(received, uint64(sent.AllPackets))
		reordered += uint64(got.reordered)
		r.UDP.JitterSeconds += got.jitter.Seconds() / float64(len(t.sockets))
		r.Bytes += max(0, got.bytes-int64(t.packetBytes))
		r.DurationSeconds = max(r.DurationSeconds, got.duration.Seconds())
	}
	if silent > 0 {
		return fmt.Errorf("%w: no report of %d of %d streams", traffic.ErrPeerGone, silent, len(t.sockets))
	}
	r.UDP.Lost, r.UDP.Reordered = r.UDP.Sent-r.UDP.Received, &reordered
	return nil
}

// ask sends the end of a stream until the server reports.
func (t *Test) ask(ctx context.Context, s *datagram.Socket, next int64) (report, error) {
	// As long as the data: a path that drops long datagrams must not look as if it had let the test
	// through.
	out := make([]byte, t.packetBytes)
	// Longer than the longest report of any version, so that it is never truncated.
	in := make([]byte, 2048)
	for try := range reportTries {
		if ctx.Err() != nil {
			return report{}, context.Cause(ctx)
		}
		copy(out, t.header.front[:])
		// The numbers continue while it is repeated, as the program's do.
		mark{id: -(next + int64(try)), sent: time.Duration(time.Now().UnixNano())}.put(out)
		if err := s.Send(out); err != nil && try == reportTries-1 {
			return report{}, err
		}
		for until := time.Now().Add(reportWait); time.Now().Before(until); {
			n, err := s.Receive(in, time.Until(until))
			if err != nil {
				break // nothing yet, or "port unreachable" for what was sent before
			}
			// The server counts up to the first datagram that marks the end, and repeats the same
			// report on request.
			if r, ok := parseReport(in[:n]); ok {
				return r, nil
			}
		}
	}
	return report{}, fmt.Errorf("report of %s: %w", s.RemoteAddr(), sys.ErrTimeout)
}
