package node

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/internal/peer/order"
)

// Source is what a node says. Its methods are called one at a time.
type Source interface {
	// Facts returns the facts of the host as of their latest reading, encoded, and their hash.
	Facts(ctx context.Context) (b []byte, hash string, err error)
	// Answer answers a question. A verb it does not have is [ErrUnknownVerb].
	Answer(ctx context.Context, verb string, args []string) (any, error)
	// Document returns a document. One that is not there is fs.ErrNotExist.
	Document(ctx context.Context, name string) ([]byte, error)
}

// Tasks does work that takes time. Its methods are called one at a time.
type Tasks interface {
	// Order hands a signed order to root's agent and returns the agent's answer. An order may come
	// again; the agent carries it out once.
	Order(ctx context.Context, envelope []byte) (order.Answer, error)
	// Measure reads a metric over a time.
	Measure(ctx context.Context, m message.Metric, over time.Duration) (float64, error)
}

// ErrUnknownVerb reports a question that a source does not know.
var ErrUnknownVerb = errors.New(message.ErrUnknown)

// FactsDocument is the name of the document that holds the facts of a host.
const FactsDocument = "facts"

// Options are what a node needs.
type Options struct {
	Home    *join.Home
	About   join.About
	Source  Source
	Tasks   Tasks // nil: this host takes no tasks
	Version string
	Log     *slog.Logger // nil: none

	Prober *Prober // nil: this host measures no other

	BeatEvery time.Duration // 0: message.BeatEvery
	Longest   time.Duration // between two attempts to connect; 0: a minute
	Joined    func(id string)
	Connected func()
}

// Node is a running node.
type Node struct {
	o        Options
	instance string
	conn     *bus.Conn

	asks    chan bus.Message // questions and fetches, in the order of their arrival
	tasks   chan bus.Message // in the order of their arrival
	renew   chan struct{}
	beat    chan struct{}
	refused chan struct{}

	// leave ends the node, because the host has left the fleet.
	leave func()

	// id is that of the membership, which stays while keepIdentity, and it alone, changes Home.
	id string

	mu       sync.Mutex
	identity string

	answers map[string][]byte // by the id of the question
	order   []string          // of the ids, the oldest first

	packed packed
}

// packed is the document of the latest fetch.
type packed struct {
	name, hash string
	bytes      int64
	data       []byte
	until      time.Time
}

// Bounds of a node.
const (
	keptAnswers  = 64
	waitingAsks  = 256
	waitingTasks = 8
	packedFor    = 30 * time.Second
	// freshPatience is how much longer a host without a connection waits before it asks for another
	// identity, while its own is not due for renewal.
	freshPatience = 4
	mostDocument  = 32 << 20
)

// Run joins the fleet where that is not done, and serves it until the context ends. It returns an
// error if the hub refuses this host for good, if the host has left (join.ErrLeft), or if the disk
// does not keep its identity.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.BeatEvery = cmp.Or(o.BeatEvery, message.BeatEvery)
	o.Longest = cmp.Or(o.Longest, time.Minute)
	n := &Node{o: o, instance: rand.Text(), asks: make(chan bus.Message, waitingAsks), renew: make(chan struct{}, 1),
		tasks: make(chan bus.Message, waitingTasks),
		beat:  make(chan struct{}, 1), refused: make(chan struct{}, 1), answers: make(map[string][]byte)}
	if err := n.admitted(ctx); err != nil {
		return ended(ctx, err)
	}
	if o.Joined != nil {
		o.Joined(o.Home.ID)
	}
	return ended(ctx, n.serve(ctx))
}

// ended makes the end of the context no error.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// admitted asks the hub until the host has an identity of this day.
func (n *Node) admitted(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := n.o.Home.Ask(ctx, n.o.About)
		if err == nil {
			break
		}
		refusal, refused := errors.AsType[*member.Refusal](err)
		if refused && !refusal.Retry || errors.Is(err, join.ErrLeft) {
			return err
		}
		// An old identity may be good still: the bus decides.
		if !refused && n.o.Home.Identity != "" && attempt > 1 {
			n.o.Log.Warn("the identity is not renewed", "error", err)
			break
		}
		n.o.Log.Info("no identity yet", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second/2 + bus.Pause(attempt, n.o.Longest)):
		}
	}
	n.mu.Lock()
	n.identity = n.o.Home.Identity
	n.mu.Unlock()
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (n *Node) serve(ctx context.Context) error {
	config, err := n.o.Home.TLS()
	if err != nil {
		return err
	}
	n.conn, err = bus.Dial(bus.Dialing{URLs: n.o.Home.Servers(), TLS: config, Key: n.o.Home.Key(),
		Name: n.o.Home.ID, Longest: n.o.Longest,
		Identity: func() (string, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.identity, nil
		},
		Connected: func() {
			wake(n.beat)
			if n.o.Connected != nil {
				n.o.Connected()
			}
		},
		Disconnected: func(error) { wake(n.refused) },
	})
	if err != nil {
		return err
	}
	defer n.conn.Close()
	n.id = n.o.Home.ID
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	n.leave = func() { stop(join.ErrLeft) }
	subjects := []string{bus.ToHost(n.id, ">"), bus.ToAll(">")}
	for _, g := range n.o.Home.Groups() {
		subjects = append(subjects, bus.ToGroup(g, ">"))
	}
	for _, subject := range subjects {
		if _, err := n.conn.Subscribe(subject, n.take); err != nil {
			return err
		}
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop(nil)
	parts.Go(func() { n.answerAll(ctx) })
	parts.Go(func() { n.doTasks(ctx) })
	parts.Go(func() {
		if err := n.keepIdentity(ctx); err != nil {
			stop(err)
		}
	})
	n.beatAll(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

// take queues a message. A host that is asked more than it can answer drops the rest.
func (n *Node) take(m bus.Message) {
	if n.o.Home.Left() { // it counts at once, and without the hub
		n.leave()
		return
	}
	m.Data = bytes.Clone(m.Data)
	if kindOf(m.Subject) == message.KindTask {
		n.takeTask(m)
		return
	}
	select {
	case n.asks <- m:
	default:
		n.o.Log.Warn("more questions than answers; one is dropped", "subject", m.Subject)
	}
}

// beatAll says that the host lives, until the context ends.
func (n *Node) beatAll(ctx context.Context) {
	// A random phase: ten thousand nodes that reconnect must not speak at the same moment for ever.
	timer := time.NewTimer(mathrand.N(n.o.BeatEvery))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-n.conn.Denied():
			n.o.Log.Error("the bus refuses a subject; the identity is asked for again", "error", err)
			wake(n.renew)
			continue
		case <-n.beat:
		case <-timer.C:
			timer.Reset(n.o.BeatEvery*3/4 + mathrand.N(n.o.BeatEvery/2))
		}
		if n.o.Home.Left() {
			n.leave()
			return
		}
		_, hash, err := n.o.Source.Facts(ctx)
		if err != nil && ctx.Err() == nil {
			n.o.Log.Warn("read this host", "error", err)
		}
		b, err := json.Marshal(message.Beat{Instance: n.instance, Machine: n.o.About.Machine, Version: n.o.Version,
			Facts: hash})
		if err == nil && n.conn.Up() {
			_ = n.conn.Send(bus.FromHost(n.id, message.KindBeat), "", b) // the next one comes soon
		}
	}
}

// keepIdentity renews the identity in time, when the hub says so, and when the bus refuses it.
func (n *Node) keepIdentity(ctx context.Context) error {
	again := time.NewTimer(max(n.o.Home.RenewIn(), time.Second))
	defer again.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.refused: // disconnected: if that lasts, the identity may be the reason
			wait := n.o.Longest/2 + mathrand.N(n.o.Longest)
			if n.o.Home.RenewIn() > 0 {
				// Most likely the hub is away, or ten thousand hosts return to it at once: asking for
				// another identity then doubles its work.
				wait = freshPatience * wait
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
			}
			if n.conn.Up() {
				continue
			}
		case <-n.renew:
		case <-again.C:
		}
		err := n.o.Home.Ask(ctx, n.o.About)
		refusal, refused := errors.AsType[*member.Refusal](err)
		switch {
		case err == nil:
			failed = 0
			n.mu.Lock()
			n.identity = n.o.Home.Identity
			n.mu.Unlock()
			if n.conn.Up() {
				_ = n.conn.Again() // the bus ends a connection whose identity expires, renewed or not
			}
			again.Reset(max(n.o.Home.RenewIn(), time.Second))
		case refused && !refusal.Retry, errors.Is(err, join.ErrLeft):
			return err
		default:
			failed++
			n.o.Log.Warn("the identity is not renewed", "error", err)
			again.Reset(time.Second + bus.Pause(failed, n.o.Longest))
		}
	}
}

// answerAll answers what is queued.
func (n *Node) answerAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-n.asks:
			n.answer(ctx, m)
		}
	}
}

// kindOf returns the last part of a subject: what is asked.
func kindOf(subject string) string {
	for i := len(subject) - 1; i >= 0; i-- {
		if subject[i] == '.' {
			return subject[i+1:]
		}
	}
	return subject
}

func (n *Node) answer(ctx context.Context, m bus.Message) {
	switch kindOf(m.Subject) {
	case message.KindAsk:
		var q message.Ask
		if json.Unmarshal(m.Data, &q) != nil {
			return
		}
		n.answerAsk(ctx, q)
	case message.KindFetch:
		var q message.Fetch
		if json.Unmarshal(m.Data, &q) != nil {
			return
		}
		n.sendParts(ctx, q)
	case message.KindMeasure:
		go n.answerMeasure(ctx, m.Data) // the prober bounds how many run
	case message.KindRenew:
		wake(n.renew)
	}
}

// reply sends to where a question wants its answer.
func (n *Node) reply(token string, b []byte) {
	if err := n.conn.Send(bus.FromHost(n.id, message.Reply(token)), "", b); err != nil {
		n.o.Log.Info("an answer is lost", "error", err)
	}
}

func (n *Node) answerAsk(ctx context.Context, q message.Ask) {
	b, known := n.answers[q.ID]
	if !known {
		b = n.decide(ctx, q)
		n.answers[q.ID] = b
		n.order = append(n.order, q.ID)
		if len(n.order) > keptAnswers {
			delete(n.answers, n.order[0])
			n.order = n.order[1:]
		}
	}
	spread := time.Duration(min(max(q.SpreadMS, 0), 60_000)) * time.Millisecond
	if spread == 0 {
		n.reply(q.Token, b)
		return
	}
	time.AfterFunc(mathrand.N(spread), func() {
		if ctx.Err() == nil {
			n.reply(q.Token, b)
		}
	})
}

// decide returns the answer to a question, within its bound.
func (n *Node) decide(ctx context.Context, q message.Ask) []byte {
	v, err := n.o.Source.Answer(ctx, q.Verb, q.Args)
	var a message.Answer
	if err == nil {
		a.Data, err = json.Marshal(v)
	}
	if err != nil {
		a = message.Answer{Error: fmt.Sprintf("%.300s", err.Error())}
	}
	b, err := json.Marshal(a)
	if err != nil || len(b) > message.MostAnswer {
		b, _ = json.Marshal(message.Answer{Error: fmt.Sprintf("the answer has %d bytes, more than %d; fetch a document",
			len(b), message.MostAnswer)})
	}
	return b
}

// sendParts sends the parts of a document that the hub asks for.
func (n *Node) sendParts(ctx context.Context, q message.Fetch) {
	p, err := n.pack(ctx, q)
	send := func(part message.Part) {
		if b, err := part.Encode(); err == nil {
			n.reply(q.Token, b)
		}
	}
	if err != nil {
		send(message.Part{Number: q.From, Error: fmt.Sprintf("%.300s", err.Error()), Absent: errors.Is(err, fs.ErrNotExist)})
		return
	}
	if q.Have == p.hash {
		send(message.Part{Hash: p.hash, Same: true})
		return
	}
	if q.Hash != "" && q.Hash != p.hash {
		send(message.Part{Number: q.From, Hash: p.hash, Error: "the document has changed meanwhile"})
		return
	}
	parts := (len(p.data) + message.PartBytes - 1) / message.PartBytes
	for i := max(q.From, 0); i < min(parts, q.From+min(max(q.Count, 1), message.Credit)); i++ {
		send(message.Part{Hash: p.hash, Bytes: p.bytes, Number: i, Parts: parts,
			Data: p.data[i*message.PartBytes : min(len(p.data), (i+1)*message.PartBytes)]})
	}
}

// pack returns a document packed: the one of the latest fetch if it is fresh, so that all parts are
// of one document.
func (n *Node) pack(ctx context.Context, q message.Fetch) (packed, error) {
	if q.Hash != "" && n.packed.name == q.Document && n.packed.hash == q.Hash && time.Now().Before(n.packed.until) {
		n.packed.until = time.Now().Add(packedFor)
		return n.packed, nil
	}
	n.packed = packed{}
	var b []byte
	var err error
	if q.Document == FactsDocument {
		b, _, err = n.o.Source.Facts(ctx)
	} else {
		b, err = n.o.Source.Document(ctx, q.Document)
	}
	if err != nil {
		return packed{}, err
	}
	if len(b) > mostDocument {
		return packed{}, fmt.Errorf("document %.100q has %d bytes, more than %d", q.Document, len(b), mostDocument)
	}
	p := packed{name: q.Document, hash: inventory.Hash(b), bytes: int64(len(b))}
	if q.Have == p.hash {
		return p, nil
	}
	var buffer bytes.Buffer
	// Without state: a packer with a window takes 800 kB of memory for each document, and with it
	// most of the time of a short one. The result is a seventh longer.
	z, err := gzip.NewWriterLevel(&buffer, gzip.StatelessCompression)
	if err == nil {
		_, err = z.Write(b)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return packed{}, err
	}
	p.data = buffer.Bytes()
	if len(p.data) > message.MostParts*message.PartBytes {
		return packed{}, fmt.Errorf("document %.100q has %d bytes packed, more than %d", q.Document, len(p.data),
			message.MostParts*message.PartBytes)
	}
	p.until = time.Now().Add(packedFor)
	if len(p.data) > message.PartBytes { // one of one part is made anew as cheaply as it is kept
		n.packed = p
	}
	return p, nil
}
