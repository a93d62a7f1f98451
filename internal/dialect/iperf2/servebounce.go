package iperf2

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
)

// A message of --bounceback has a layout of its own, in words of 32 bits, big-endian:
//
//	0        flagBounce
//	1        length of the message, bytes (-l)
//	2        number of the burst
//	3, 4     flags, type of service
//	5, 6     when the client sent it: seconds, microseconds of the wall clock
//	7, 8     when the server received it; all bits are set until then
//	9, 10    when the server sent it back
//	11       how long the server shall hold it, microseconds (--bounceback-hold)
const (
	bounceHeadBytes = 48
	maxBounceBytes  = 1 << 20 // the only number that determines memory
	maxBounceHold   = 10 * time.Second
)

// bounceBytes returns the length of the message that head begins; ok is false as long as it is
// unknown, and for everything else.
func bounceBytes(head []byte) (n int, ok bool) {
	if len(head) < 8 || !looksLikeSettings(head) || binary.BigEndian.Uint32(head)&flagBounce == 0 {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(head[4:])), true
}

// bounce sends each message of a client back until the client ends the stream. head is what has
// been read of the first one.
func (t *transfer) bounce(ctx context.Context, start time.Time, head []byte) error {
	n, ok := bounceBytes(head)
	if !ok || n < bounceHeadBytes || n > maxBounceBytes {
		return fmt.Errorf("%w: messages of %d bytes are not within %d and %d", errDialect, n, bounceHeadBytes,
			maxBounceBytes)
	}
	defer engine.Stay()()
	p := make([]byte, n)
	have := copy(p, head)
	messages := 0
	var err error
	for {
		t.conn.SetDeadline(time.Now().Add(t.timing.idle))
		if _, err = io.ReadFull(t.conn, p[have:]); err != nil {
			break
		}
		have = 0
		if err = t.bounceOne(ctx, p); err != nil {
			break
		}
		messages++
	}
	if errors.Is(err, io.EOF) {
		err = nil // the client has had enough; in the middle of a message it is another error
	}
	t.log("iperf2 tcp from %s: sent %d messages of %d bytes back in %.2f s", t.from, messages, n,
		time.Since(start).Seconds())
	return err
}

// bounceOne sends one message back.
func (t *transfer) bounceOne(ctx context.Context, p []byte) error {
	stamp := func(at int) {
		now := time.Now()
		binary.BigEndian.PutUint32(p[at:], uint32(now.Unix()))
		binary.BigEndian.PutUint32(p[at+4:], uint32(now.Nanosecond()/1000))
	}
	stamp(4 * 7)
	hold := time.Duration(binary.BigEndian.Uint32(p[4*11:])) * time.Microsecond
	if err := service.Rest(ctx, min(hold, maxBounceHold)); err != nil {
		return err
	}
	if err := t.spend(ctx, 2*len(p)); err != nil { // both ways
		return err
	}
	stamp(4 * 9)
	_, err := t.conn.Write(p)
	return err
}
