package gather

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
)

// bench is a bus with an asker, and hosts that a test speaks for.
type bench struct {
	t     *testing.T
	trust *bus.Trust
	urls  []string
	roots []byte
	*Asker
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	trust, err := bus.OpenTrust(durable.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := bus.OpenAuthority(durable.OS(), dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h, err := bus.Embed(bus.Options{Trust: trust, Authority: authority,
		Listen: fmt.Sprint("127.0.0.1:", testenv.FreePorts(t, 1))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	c, err := h.Connect("asks")
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, trust, []string{fmt.Sprintf("tls://%s", h.Address())}, authority.PEM, a}
}

// host connects a host that answers by a function. say sends a kind with bytes.
func (b *bench) host(id string, answer func(m bus.Message, say func(kind string, b []byte))) {
	b.t.Helper()
	key, err := bus.NewKey()
	if err != nil {
		b.t.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := b.trust.Sign(bus.Identity{ID: id, Key: public})
	if err != nil {
		b.t.Fatal(err)
	}
	config, err := bus.Client(b.roots, bus.ServerName)
	if err != nil {
		b.t.Fatal(err)
	}
	up := make(chan struct{}, 16)
	c, err := bus.Dial(bus.Dialing{URLs: b.urls, TLS: config, Key: key, Name: id,
		Identity: func() (string, error) { return text, nil }, Connected: func() { up <- struct{}{} }})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	select {
	case <-up:
	case <-time.After(time.Minute):
		b.t.Fatalf("host %s does not connect", id)
	}
	for _, subject := range []string{bus.ToHost(id, ">"), bus.ToAll(">")} {
		if _, err := c.Subscribe(subject, func(m bus.Message) {
			answer(m, func(kind string, data []byte) { _ = c.Send(bus.FromHost(id, kind), "", data) })
		}); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := c.Flush(b.t.Context()); err != nil { // the subscriptions are in force
		b.t.Fatalf("host %s is not there: %v", id, err)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAsk: an answer, one that is too long, silence and absence differ, and no
// host answers for another.
func TestAsk(t *testing.T) {
	b := newBench(t)
	reply := func(m bus.Message, say func(string, []byte), data []byte) {
		var q message.Ask
		if json.Unmarshal(m.Data, &q) == nil {
			say(message.Reply(q.Token), data)
		}
	}
	good := encode(t, message.Answer{Data: json.RawMessage(`"yes"`)})
	b.host("good", func(m bus.Message, say func(string, []byte)) { reply(m, say, good); reply(m, say, good) })
	b.host("long", func(m bus.Message, say func(string, []byte)) { reply(m, say, bytes.Repeat([]byte("x"), 5000)) })
	b.host("silent", func(bus.Message, func(string, []byte)) {})
	b.host("stranger", func(m bus.Message, say func(string, []byte)) { reply(m, say, good) })
	ask := func(q Question) Gathered {
		t.Helper()
		q.Verb = "x"
		g, err := b.Ask(t.Context(), q)
		if err != nil || g.Incomplete {
			t.Fatalf("incomplete %v, %v", g.Incomplete, err)
		}
		return g
	}
	const silence = 100 * time.Millisecond // what a silent host costs; the others end the question before
	for _, all := range []bool{false, true} {
		answering := []string{"good", "long"}
		if !all {
			answering = append(answering, "absent")
		}
		g := ask(Question{IDs: answering, All: all, Within: time.Minute})
		if string(g.Answers["good"].Data) != `"yes"` || g.Answers["long"].Error == "" || len(g.Answers) != 2 {
			t.Errorf("all %v: answers %+v", all, g.Answers)
		}
		if want := answering[2:]; !slices.Equal(g.Absent, want) || len(g.Silent) > 0 {
			t.Errorf("all %v: absent %v, silent %v", all, g.Absent, g.Silent)
		}
		if g = ask(Question{IDs: []string{"silent"}, All: all, Within: silence}); len(g.Answers)+len(g.Absent) > 0 ||
			!slices.Equal(g.Silent, []string{"silent"}) {
			t.Errorf("all %v: a silent host: %+v", all, g)
		}
	}
	// A message to all has no place for the answer of an absence.
	g := ask(Question{IDs: []string{"absent"}, All: true, Within: silence})
	if !slices.Equal(g.Silent, []string{"absent"}) {
		t.Errorf("one of all: %+v", g)
	}
	// What has come in time counts beside what has not.
	before := 0
	for len(ask(Question{IDs: []string{"good", "silent"}, Within: silence << before}).Answers) == 0 {
		if before++; before > 9 {
			t.Fatal("no answer within 50 s")
		}
	}
	if len(b.waiting) != 0 {
		t.Errorf("%d questions are still waited for", len(b.waiting))
	}
}

// parts returns a document as the parts that a host sends.
func parts(doc []byte, size int) []message.Part {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(doc) // into memory
	_ = w.Close()
	n := (z.Len() + size - 1) / size
	var out []message.Part
	for i := range n {
		out = append(out, message.Part{Hash: inventory.Hash(doc), Bytes: int64(len(doc)), Number: i, Parts: n,
			Data: z.Bytes()[i*size : min(z.Len(), (i+1)*size)]})
	}
	return out
}

// TestFetch fetches documents from hosts that are honest, forgetful, broken, or on their way out.
func TestFetch(t *testing.T) {
	b := newBench(t)
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("%x", i*i*2654435761))
	}
	doc := []byte(strings.Join(lines, "\n"))
	whole := parts(doc, 2000)
	if len(whole) < 2*message.Credit {
		t.Fatalf("the document has %d parts: too few", len(whole))
	}
	var asked atomic.Int64 // parts that the honest host has sent without being asked for
	serve := func(change func(i int, p *message.Part) bool) func(bus.Message, func(string, []byte)) {
		return func(m bus.Message, say func(string, []byte)) {
			var q message.Fetch
			if json.Unmarshal(m.Data, &q) != nil || q.Token == "" || q.Document == "" {
				return
			}
			if q.Have == inventory.Hash(doc) {
				b, _ := message.Part{Same: true}.Encode() // plain data
				say(message.Reply(q.Token), b)
				return
			}
			if q.Count > message.Credit {
				asked.Add(1)
			}
			for i := q.From; i < min(len(whole), q.From+q.Count); i++ {
				p := whole[i]
				if change != nil && !change(i, &p) {
					continue
				}
				b, _ := p.Encode() // plain data
				say(message.Reply(q.Token), b)
			}
		}
	}
	b.host("honest", serve(nil))
	b.host("swaps", serve(func(i int, p *message.Part) bool { p.Number ^= 1; return true }))
	b.host("lies", serve(func(i int, p *message.Part) bool { p.Hash = strings.Repeat("0", 32); return true }))
	var broken atomic.Int64
	b.host("changes", serve(func(i int, p *message.Part) bool { // once, between two parts
		if i == 5 && broken.Add(1) == 1 {
			p.Hash, p.Error, p.Data = "x", "the document has changed meanwhile", nil
		}
		return true
	}))
	b.host("empty", func(m bus.Message, say func(string, []byte)) {
		var q message.Fetch
		if json.Unmarshal(m.Data, &q) == nil && q.Document != "" {
			b, _ := message.Part{Error: "no such document", Absent: true}.Encode() // plain data
			say(message.Reply(q.Token), b)
		}
	})
	got := make(map[string]Fetched)
	ids := []string{"honest", "swaps", "lies", "changes", "empty", "absent"}
	if err := b.Fetch(t.Context(), "inspect", ids, nil, func(f Fetched) { got[f.ID] = f }); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"honest", "changes"} {
		if f := got[id]; f.Err != nil || !bytes.Equal(f.Data, doc) || f.Hash != inventory.Hash(doc) {
			t.Errorf("%s: %d bytes, %v", id, len(f.Data), f.Err)
		}
	}
	for id, want := range map[string]error{"swaps": errDamaged, "lies": errDamaged, "empty": fs.ErrNotExist,
		"absent": ErrAbsent} {
		if f := got[id]; !errors.Is(f.Err, want) || f.Data != nil {
			t.Errorf("%s: %v, want %v", id, f.Err, want)
		}
	}
	if asked.Load() > 0 {
		t.Error("more parts were asked for than the credit")
	}
	if f := b.One(t.Context(), "inspect", "honest", inventory.Hash(doc)); !f.Same || f.Err != nil || f.Data != nil {
		t.Errorf("a document that the hub has: %+v", f)
	}
}

// TestUnpackBound: a document that unpacks to more than the bound ends there.
func TestSmall(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	document := make([]byte, 1<<20)
	_, _ = w.Write(document) // into memory
	_ = w.Close()
	b := newBench(t)
	b.host("A", func(m bus.Message, say func(string, []byte)) {
		var q message.Fetch
		if json.Unmarshal(m.Data, &q) != nil {
			return
		}
		part, _ := message.Part{Hash: inventory.Hash(document), Parts: 1, Data: z.Bytes()}.Encode()
		say(message.Reply(q.Token), part)
	})
	if f := b.One(t.Context(), "facts", "A", ""); f.Err != nil {
		t.Error(f.Err)
	}
	if f := b.Small(t.Context(), "facts", "A", "", 64<<10); !errors.Is(f.Err, errLarge) || f.Data != nil {
		t.Errorf("%d packed bytes unpack to 1 MiB, of 64 KiB: %d bytes, %v", z.Len(), len(f.Data), f.Err)
	}
}

// TestTalkative: a host that answers a question many times takes the place of no other answer.
func TestTalkative(t *testing.T) {
	b := newBench(t)
	var token string
	b.host("A", func(m bus.Message, _ func(string, []byte)) {
		var q message.Ask
		if json.Unmarshal(m.Data, &q) == nil {
			token = q.Token
		}
		b.mu.Lock()
		take := b.waiting[token]
		b.mu.Unlock()
		// What the reader of the connection does with what A and then B have sent.
		answer := []byte(`{"data":1}`)
		for range 1000 {
			take("A", bus.Message{Data: answer})
		}
		for range 1000 {
			take("C", bus.Message{Data: answer}) // was not asked
		}
		take("B", bus.Message{Data: answer})
	})
	g, err := b.Ask(t.Context(), Question{Verb: "ping", IDs: []string{"A", "B"}, All: true, Within: time.Minute})
	if err != nil || len(g.Answers) != 2 {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestUnpackBound(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	zeros := make([]byte, 1<<20)
	for range mostUnpacked>>20 + 1 {
		_, _ = w.Write(zeros) // into memory
	}
	_ = w.Close()
	if _, err := unpack(z.Bytes(), "x", mostUnpacked); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%d packed bytes that unpack to 33 MiB: %v", z.Len(), err)
	}
	if _, err := unpack([]byte("no gzip"), "x", mostUnpacked); !errors.Is(err, errDamaged) {
		t.Errorf("no gzip: %v", err)
	}
}

func TestMeasure(t *testing.T) {
	b := newBench(t)
	rtt := 0.001
	b.host("near", func(m bus.Message, say func(string, []byte)) {
		var q message.Measure
		if json.Unmarshal(m.Data, &q) == nil && q.Target != "" {
			say(message.Reply(q.Token), encode(t, message.Answer{Data: encode(t, message.Measured{RTTSeconds: &rtt})}))
		}
	})
	b.host("old", func(m bus.Message, say func(string, []byte)) {
		var q message.Measure
		if json.Unmarshal(m.Data, &q) == nil && q.Target != "" {
			say(message.Reply(q.Token), encode(t, message.Answer{Error: message.ErrUnknown}))
		}
	})
	b.host("mute", func(bus.Message, func(string, []byte)) {})
	q := message.Measure{Target: "192.0.2.1:5201", Test: "ping"}
	if m, err := b.Measure(t.Context(), "near", q, time.Minute); err != nil || *m.RTTSeconds != rtt {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := b.Measure(t.Context(), "old", q, time.Minute); err != nil || m.Refused == "" {
		t.Errorf("a node that cannot measure: %+v, %v", m, err)
	}
	if _, err := b.Measure(t.Context(), "absent", q, time.Minute); !errors.Is(err, ErrAbsent) {
		t.Errorf("an absent host: %v", err)
	}
	if _, err := b.Measure(t.Context(), "mute", q, 100*time.Millisecond); !errors.Is(err, ErrSilent) {
		t.Errorf("a silent host: %v", err)
	}
}
