package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// nowhere is a channel that takes every message and never delivers one.
type nowhere struct{}

func (nowhere) Send(context.Context, string, any) error { return nil }

func (nowhere) Receive(ctx context.Context) (wire.Message, error) {
	<-ctx.Done()
	return wire.Message{}, ctx.Err()
}

// stillSide returns what one end of a test has opened, in the middle of a test that moves nothing,
// on a channel that leads nowhere.
func stillSide(t testing.TB, spec Spec, near bool, stage engine.Stage) (Spec, *session, *engine.Phase, cast) {
	t.Helper()
	spec, err := spec.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t.Context(), nowhere{}, longPatience, time.Hour)
	t.Cleanup(s.close)
	p := &engine.Phase{}
	p.Set(stage)
	var side cast
	switch spec.Test {
	case UDP:
		side.ending = &datagramEnding{exchange: datagram.NewExchange(nil, make([]datagram.Port, spec.channels()))}
	case Stream:
		side = streamTest{}.cast(spec, near, nil)
	}
	return spec, s, p, side
}

func stillNear(t testing.TB, spec Spec, stage engine.Stage) (*nearConductor, *nearEnd) {
	t.Helper()
	spec, s, p, side := stillSide(t, spec, true, stage)
	c := newNearConductor(spec, s, p, side)
	c.base = time.Now()
	return c, &nearEnd{Link: Link{HostName: "near"}, spec: spec}
}

// still returns either end as its conductor sees it.
func still(t testing.TB, spec Spec, near bool, stage engine.Stage) role {
	t.Helper()
	if near {
		c, _ := stillNear(t, spec, stage)
		return c
	}
	spec, s, p, side := stillSide(t, spec, false, stage)
	c := newFarConductor(spec, s, p, side, Limits{})
	c.base = time.Now()
	return c
}

func TestMessagesOutOfPlace(t *testing.T) {
	stream, udp := Spec{Test: Stream}, Spec{Test: UDP, Streams: 2}
	amount := Spec{Test: Stream, Bytes: 100}
	for _, c := range []struct {
		name  string
		spec  Spec
		near  bool
		stage engine.Stage
		typ   string
		body  string
		want  bool // in place
	}{
		{"near opens unasked", stream, true, engine.Warm, msgOpened, ``, false},
		{"opened to the far end", stream, false, engine.Warm, msgOpened, ``, false},
		{"mark to the near side", stream, true, engine.Warm, msgMark, ``, false},
		{"mark in the window", stream, false, engine.Measured, msgMark, ``, false},
		{"full of no amount", stream, true, engine.Measured, msgFull, ``, false},
		{"full of an amount", amount, true, engine.Measured, msgFull, ``, true},
		{"full before the window", amount, false, engine.Warm, msgFull, ``, false},
		{"sent of a stream", stream, true, engine.Measured, msgSent, `{"streams":[]}`, false},
		{"sent", udp, false, engine.Measured, msgSent, `{"streams":[{"packets":1,"all_packets":2},{}]}`, true},
		{"sent before the window", udp, false, engine.Warm, msgSent, `{"streams":[{},{}]}`, false},
		{"sent of too few streams", udp, false, engine.Tail, msgSent, `{"streams":[{}]}`, false},
		{"sent of too many streams", udp, false, engine.Tail, msgSent, `{"streams":[{},{},{}]}`, false},
		{"sent less than nothing", udp, false, engine.Tail, msgSent, `{"streams":[{"packets":-1},{}]}`, false},
		{"sent more in the window than at all", udp, false, engine.Tail, msgSent,
			`{"streams":[{"packets":2,"all_packets":1},{}]}`, false},
		{"sent garbage", udp, false, engine.Tail, msgSent, `"all of it"`, false},
		{"an interval", stream, true, engine.Measured, msgInterval,
			`{"measured":true,"start_seconds":1,"end_seconds":2,"bytes":5}`, true},
		{"an interval of no length", stream, true, engine.Measured, msgInterval,
			`{"start_seconds":1,"end_seconds":1}`, false},
		{"an interval of less than nothing", stream, true, engine.Measured, msgInterval,
			`{"end_seconds":1,"bytes":-1}`, false},
		{"stop before the end", stream, false, engine.Measured, msgStop, ``, false},
		{"a result on the way", stream, true, engine.Measured, msgResult, `{}`, false},
	} {
		con := still(t, c.spec, c.near, c.stage)
		_, err := con.handle(wire.Message{Type: c.typ, Body: json.RawMessage(c.body)})
		if c.want != (err == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, errStopped) {
			t.Errorf("%s: %v is no broken protocol", c.name, err)
		}
	}
	con := still(t, udp, false, engine.Tail)
	for i, want := range []bool{true, false} {
		_, err := con.handle(wire.Message{Type: msgSent, Body: json.RawMessage(`{"streams":[{},{}]}`)})
		if want != (err == nil) {
			t.Errorf("sent, time %d: %v", i+1, err)
		}
	}
}

// messageTypes are all types that a fuzzer should try, one that does not exist included.
var messageTypes = []string{
	msgAccept, msgReady, msgGo, msgSteady, msgMark, msgOpened, msgInterval,
	msgBeat, msgFull, msgSent, msgDone, msgStop, msgResult, msgError,
	"test.nonsense",
}

// FuzzHandle gives any message to either end in any phase: the end acts on it or refuses it.
func FuzzHandle(f *testing.F) {
	for i := range messageTypes {
		f.Add(byte(i), byte(i), true,
			[]byte(`{"streams":[{"packets":1,"all_packets":2}],"message":"x","measured":true,"end_seconds":1}`))
	}
	f.Add(byte(6), byte(1), true, []byte(`{"start_seconds":1e-300,"end_seconds":2e-300,"bytes":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, typ, stage byte, near bool, body []byte) {
		for _, spec := range []Spec{{Test: Stream, Direction: Bidir}, {Test: UDP}, {Test: Stream, Bytes: 10},
			{Test: RR}} {
			spec.Direction = cmp.Or(spec.Direction, Up)
			line := newTimeline(spec, func(i Interval) {
				if _, err := json.Marshal(i); err != nil {
					t.Fatal(err)
				}
			})
			c := still(t, spec, near, engine.Stage(stage%3))
			if near, ok := c.(*nearConductor); ok {
				near.marked, near.farParts = true, line.addFar
			}
			_, err := c.handle(wire.Message{Type: messageTypes[int(typ)%len(messageTypes)], Body: body})
			if err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, errStopped) &&
				!errors.Is(err, ErrFar) && !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
			line.addOwn(part{Measured: true, End: 1})
			line.finish(nil)
		}
	})
}

// TestFiguresThatContradictThemselves checks that the near end refuses them: a far end could
// otherwise make it print a loss of billions, or a negative one.
func TestFiguresThatContradictThemselves(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want bool // they are possible
	}{
		{`{}`, true},
		{`{"udp_received":{"sent_packets_total":10,"received_packets_total":3,"lost_packets_total":7,` +
			`"seconds":0.5,"jitter_seconds":0.001}}`, true},
		{`{"udp_received":{"sent_packets_total":10,"received_packets_total":11}}`, false},
		{`{"udp_received":{"sent_packets_total":10,"received_packets_total":3,"lost_packets_total":8}}`, false},
		{`{"udp_received":{"lost_packets_total":18446744073709551615}}`, false},
		{`{"udp_received":{"duplicate_packets_total":18446744073709551615}}`, false},
		{`{"udp_received":{"jitter_seconds":-1}}`, false},
		{`{"udp_received":{"socket_drops":-1}}`, false},
		{`{"udp_received":{"delay_variation":{"max_seconds":1e300}}}`, false},
		{`{"udp_sent":{"packets":5,"socket_errors":5,"gaps":{"min_seconds":0.001,"max_seconds":0.002}}}`, true},
		{`{"udp_sent":{"packets":5,"socket_errors":6}}`, false},
		{`{"udp_sent":{"packets":-1}}`, false},
		{`{"udp_sent":{"gaps":{"min_seconds":2,"max_seconds":1}}}`, false},
		{`{"seconds":-1}`, false},
	} {
		var far resultBody
		if err := decode(wire.Message{Type: msgResult, Body: []byte(c.raw)}, &far); err != nil {
			t.Fatal(err)
		}
		if err := far.check(); c.want != (err == nil) {
			t.Errorf("%s: %v", c.raw, err)
		}
	}
}

// FuzzFarResult makes results out of what a far end may claim: the near end refuses it, or can
// print the result.
func FuzzFarResult(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"bytes":1000,"seconds":1,"window_seconds":1,"end":{"tcp":[{"sender":true,"bytes_acked":5}]}}`,
		`{"udp_received":{"sent_packets_total":10,"received_packets_total":3,"lost_packets_total":7,` +
			`"seconds":0.5},"seconds":1}`,
		`{"seconds":1e-320,"bytes":1}`, `{"parts":[{"end_seconds":1e308}]}`, `{"udp_sent":{"bytes":-5}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var far resultBody
		if decode(wire.Message{Type: msgResult, Body: raw}, &far) != nil || far.check() != nil {
			return
		}
		for _, spec := range []Spec{
			{Test: Stream, Direction: Bidir, RateBitsPerSec: 1e6}, {Test: UDP, RateBitsPerSec: 1e6},
			{Test: UDP, Direction: Bidir}, {Test: RR}, {Test: Stream, Bytes: 10},
		} {
			c, n := stillNear(t, spec, engine.Stopped)
			line := newTimeline(n.spec, func(Interval) {})
			line.finish(far.Parts)
			r := assemble(c, n, time.Now(), far, line.intervals)
			if _, err := json.Marshal(r); err != nil {
				t.Fatal(err)
			}
			var explained uint64
			for _, l := range r.Losses {
				explained += l.Packets
			}
			if r.UDP != nil && explained != r.UDP.Lost {
				t.Fatalf("lost %d, explained %+v", r.UDP.Lost, r.Losses)
			}
		}
	})
}

// FuzzAccept gives the answers that a far end may send to test.start to the code that uses them.
func FuzzAccept(f *testing.F) {
	f.Add([]byte(`{"echo_token":"AAAAAAAAAAAAAAAAAAAAAA==","echo_port":7070}`))
	f.Add([]byte(`{"accept_ports":[1,2],"accept_token":"AA=="}`))
	f.Add([]byte(`{"echo_port":-1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a acceptBody
		if decode(wire.Message{Type: msgAccept, Body: raw}, &a) != nil {
			return
		}
		link := Link{PeerIP: "127.0.0.1"}
		if to, ok := link.echoAddress(t.Context(), a.EchoPort); ok &&
			(to.Port() == 0 || !strings.HasPrefix(to.String(), "127.0.0.1:")) {
			t.Fatalf("%+v leads to %v", a, to)
		}
	})
}
