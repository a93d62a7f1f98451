package engine

import (
	"testing"
	"time"
)

// TestShortQueue follows a stream through fast and slow times.
func TestShortQueue(t *testing.T) {
	near, _ := connPair(t, ConnOptions{})
	q := shortQueue{conn: near}
	const mb = 1e6
	for i, c := range []struct {
		now  time.Duration
		sent int64
		on   bool
	}{
		{time.Millisecond, 100 * mb, false},       // too early to know
		{10 * time.Millisecond, 5 * mb, false},    // 4 Gb/s
		{20 * time.Millisecond, 30 * mb, true},    // 20 Gb/s on a path of microseconds
		{30 * time.Millisecond, 38 * mb, true},    // 6.4 Gb/s: above half
		{40 * time.Millisecond, 42 * mb, false},   // 3.2 Gb/s
		{50 * time.Millisecond, 80 * mb, true},    // fast again
		{60 * time.Millisecond, 80.1e6, false},    // stalled
		{61 * time.Millisecond, 5000 * mb, false}, // only a moment
	} {
		q.follow(c.now, c.sent)
		if q.on != c.on || q.off {
			t.Fatalf("step %d: on %v, given up %v; want on %v", i, q.on, q.off, c.on)
		}
	}
	if got := near.Buffers().UnsentBytes; got != unsentBytes {
		t.Errorf("the evidence says %d bytes, want those of the fast times: %d", got, unsentBytes)
	}
	// Beside others of its thread a slow stream is sent as fast as all of them.
	var moved int64
	q = shortQueue{conn: near, meter: meter{shared: &moved}}
	moved = 100 * mb
	if q.follow(10*time.Millisecond, mb); !q.on {
		t.Error("one stream of a fast thread keeps a long queue")
	}
}

// TestShortQueueIsLeftAlone checks where the bound would only do harm.
func TestShortQueueIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		conn ConnOptions
		send SendMethod
	}{
		"paced": {ConnOptions{PacingBytesPerSec: 1e9}, SendCopy}, "by reference": {ConnOptions{}, SendSplice},
	} {
		near, _ := connPair(t, c.conn)
		before := near.Buffers().UnsentBytes
		w, err := NewStreamSender(&Phase{}, near, StreamOptions{Send: c.send})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		w.body.(*streamSender).short.follow(10*time.Millisecond, 1e9)
		if got := near.Buffers().UnsentBytes; got != before {
			t.Errorf("%s: %d bytes, want %d", name, got, before)
		}
	}
}

// TestInfoOfAShortQueue leaves out what the bound causes.
func TestInfoOfAShortQueue(t *testing.T) {
	near, _ := connPair(t, ConnOptions{})
	if err := near.setUnsentLimit(unsentBytes); err != nil {
		t.Fatal(err)
	}
	info, err := near.Info()
	if err != nil || info.Length == 0 || info.SndbufLimitedMicros != 0 || info.DeliveryRateAppLimited {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestFollowingAllocatesNothing checks fast and slow times, and the changes between them.
func TestFollowingAllocatesNothing(t *testing.T) {
	near, far := connPair(t, ConnOptions{})
	q, l := shortQueue{conn: near}, lowWater{conn: far}
	var now time.Duration
	var moved int64
	step := func(bytes int64) {
		now += 10 * time.Millisecond
		moved += bytes
		q.follow(now, moved)
		l.follow(now, moved)
	}
	if n := testing.AllocsPerRun(50, func() {
		step(100e6)
		step(100e6)
		step(1e6)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if q.off || l.off {
		t.Errorf("given up: queue %v, mark %v", q.off, l.off)
	}
}
