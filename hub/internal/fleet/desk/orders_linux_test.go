package desk

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/hub/internal/fleet/swarm"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

const rmem = knob.ID("sysctl:net.core.rmem_max")

// counting counts writes.
type counting struct {
	*knob.Memory
	writes atomic.Int64
}

func (c *counting) Write(ctx context.Context, id knob.ID, v knob.Value) error {
	c.writes.Add(1)
	return c.Memory.Write(ctx, id, v)
}

// orderHost is a host of a test: root's agent over a socket, and a node without rights.
type orderHost struct {
	t      *testing.T
	id     string // as a member
	socket string
	dir    string
	key    ed25519.PrivateKey
	knobs  *counting
	home   *join.Home
	hook   atomic.Pointer[func()] // once: after an order is carried out, before its answer leaves the node
}

// once sets the hook. Its end closes the channel.
func (h *orderHost) once(f func()) <-chan struct{} {
	ran := make(chan struct{})
	hook := func() { defer close(ran); f() }
	h.hook.Store(&hook)
	return ran
}

func (h *orderHost) executor() *executor.Executor {
	return executor.New(executor.Config{
		Host: conduct.OrderHost(h.id), State: h.dir, Read: h.knobs.Read,
		BootID: func() (string, error) { return "boot", nil },
		Keys:   func() (order.Keys, error) { return order.Keys{"ann": h.key.Public().(ed25519.PublicKey)}, nil },
		Policy: func() (policy.Policy, error) {
			return policy.Parse([]byte("version: 1\nchanges:\n  allow: [\"sysctl:net.core.*\"]\n"))
		},
		Open: func() (*journal.Journal, error) {
			return journal.Open(journal.Options{Dir: h.dir, Unguarded: true, BootID: "boot", Mode: journal.Deadline,
				Backend: h.knobs, Catalog: knob.Catalogue(),
				Identify: func(knob.ID) journal.Identity { return journal.Identity{} }})
		},
	})
}

// agent runs root's agent until stop is called.
func (h *orderHost) agent() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := agent.Serve(ctx, agent.Config{Socket: h.socket, Version: "v", Local: agent.Local{Dir: h.dir},
			Orders: h.executor()},
			func(string) { close(ready) })
		if err != nil {
			h.t.Error(err)
		}
	})
	<-ready
	stop = func() { cancel(); done.Wait() }
	h.t.Cleanup(stop)
	return stop
}

// Order and Measure implement node.Tasks.
func (h *orderHost) Order(ctx context.Context, envelope []byte) (order.Answer, error) {
	c := agent.NewClient(h.socket)
	defer c.Close()
	a, err := c.Order(ctx, envelope)
	if hook := h.hook.Swap(nil); hook != nil {
		(*hook)()
	}
	return a, err
}

func (h *orderHost) Measure(context.Context, message.Metric, time.Duration) (float64, error) {
	return 0, node.ErrNoTraffic
}

// node runs the node until stop is called.
func (h *orderHost) node() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	connected := make(chan struct{}, 8)
	done.Go(func() {
		err := node.Run(ctx, node.Options{Home: h.home, Source: swarm.NewHost(0, 1000), Tasks: h, Version: "1.0",
			About: join.About{Name: "h"}, BeatEvery: 100 * time.Millisecond, Longest: time.Second,
			Connected: func() { connected <- struct{}{} }})
		if err != nil {
			h.t.Error(err)
		}
	})
	<-connected
	stop = func() { cancel(); done.Wait() }
	h.t.Cleanup(stop)
	return stop
}

// signed returns an order of ann.
func (h *orderHost) signed(o order.Order) []byte {
	h.t.Helper()
	o.Rollout, o.Host, o.Epoch, o.Knob, o.Expect, o.To = "r1", conduct.OrderHost(h.id), 1, rmem, "200000", "300000"
	if o.NotAfter == 0 {
		o.NotAfter = time.Now().Add(time.Hour).Unix()
	}
	o.NotBefore = o.NotAfter - 7200
	if o.Verb == order.Try {
		o.Deadline = 300 // as long as policies allow by default: it does not end within the test
	}
	payload, err := o.Encode()
	if err != nil {
		h.t.Fatal(err)
	}
	e := order.Envelope{Payload: payload}
	e.Sign("ann", h.key)
	b, err := e.Encode()
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// TestOrders hands orders over the bus, the node and root's socket, and breaks each of them between
// an order and its answer. Whatever is lost, the host carries an order out once, and answers it the
// same again.
func TestOrders(t *testing.T) {
	d := start(t, options(t))
	address, token := invite(t, d.o.Dir, Request{Uses: 1})
	dir, err := os.MkdirTemp("", "orders") // a path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &orderHost{t: t, socket: filepath.Join(dir, "run", "agent.sock"), dir: filepath.Join(dir, "state"),
		key:   ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize))),
		knobs: &counting{Memory: knob.NewMemory(map[knob.ID]knob.Value{rmem: "200000"})}}
	if h.home, err = join.Prepare(durable.OS(), filepath.Join(dir, "home"), address, token); err != nil {
		t.Fatal(err)
	}
	if err := h.home.Ask(t.Context(), join.About{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	h.id = h.home.ID
	conn, err := d.hub.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWay(d.Desk, conn)
	if err != nil {
		t.Fatal(err)
	}
	// send sends an order again and again until ok has what it wants. What is not answered in time is
	// sent again, as the machine of a rollout does, with more time.
	send := func(what string, envelope []byte, ended <-chan struct{}, ok func(order.Answer, error) bool) {
		t.Helper()
		within := time.Second
		until(t, what, func() bool {
			ctx, stop := context.WithTimeout(t.Context(), within)
			defer stop()
			go func() {
				select {
				case <-ended:
					stop()
				case <-ctx.Done():
				}
			}()
			within *= 2
			return ok(w.Order(ctx, conduct.OrderHost(h.id), envelope))
		})
	}
	must := func(what string, envelope []byte, want order.Code) {
		t.Helper()
		send(what, envelope, nil, func(a order.Answer, err error) bool {
			if err == nil && a.Code != want {
				t.Fatalf("%s: %+v, want %s", what, a, want)
			}
			return err == nil
		})
	}
	writes := func(what string, want int64) {
		t.Helper()
		if n := h.knobs.writes.Load(); n != want {
			t.Errorf("%s: %d writes, want %d", what, n, want)
		}
	}
	// broken sends an order until the hook has run, which breaks something between it and its
	// answer.
	broken := func(what string, envelope []byte, want order.Code, ran <-chan struct{}) {
		t.Helper()
		send(what, envelope, ran, func(a order.Answer, err error) bool {
			if err == nil && a.Code != want {
				t.Fatalf("%s: %+v, want %s", what, a, want) // the answer may have left in time
			}
			select {
			case <-ran:
				return true
			default:
				return false
			}
		})
	}
	try := h.signed(order.Order{ID: "t1", Verb: order.Try, Serial: 1})
	send("the bus says that there is no node", try, nil, func(a order.Answer, err error) bool {
		if err == nil {
			t.Fatalf("without a node: %+v", a)
		}
		return strings.Contains(err.Error(), errAbsent.Error())
	})
	stopNode := h.node()
	send("the node says that there is no agent", try, nil, func(_ order.Answer, err error) bool {
		return err != nil && strings.Contains(err.Error(), "agent at")
	})
	writes("nothing has reached root", 0)

	stopAgent := h.agent()
	must("a try", try, order.InTrial)
	must("the same again", try, order.InTrial)
	writes("a duplicate", 1)

	// The agent dies after it has the order, and the node with it.
	commit := h.signed(order.Order{ID: "c1", Verb: order.Commit, Of: "t1", Serial: 2})
	broken("the commit reaches the host", commit, order.Committed,
		h.once(func() { go stopNode(); time.Sleep(10 * time.Millisecond); stopAgent() }))
	stopNode()
	h.agent()
	stopNode = h.node()
	must("the commit, again", commit, order.Committed)
	must("the try, late", try, order.Committed)
	writes("after both were killed", 1)

	// The connection is lost between the order and the answer: the answer comes from nowhere.
	undo := h.signed(order.Order{ID: "u1", Verb: order.Undo, Of: "t1", Serial: 3})
	broken("the undo reaches the host", undo, order.Undone, h.once(func() { stopHost(d, h.id) }))
	must("the undo, again", undo, order.Undone)
	writes("after a lost connection", 2)

	// Late and out of order.
	late := order.Order{ID: "t2", Verb: order.Try, Serial: 4, NotAfter: time.Now().Unix() - 5}
	must("after its not-after", h.signed(late), order.TooLate)
	must("an older serial", h.signed(order.Order{ID: "t3", Verb: order.Try, Serial: 2}), order.OldSerial)
	must("the same id, other bytes", h.signed(order.Order{ID: "t1", Verb: order.Try, Serial: 9}), order.IDReused)
	writes("refused", 2)
	stopNode()
}

// stopHost cuts the connection of a host. Its node connects again.
func stopHost(d *running, id string) {
	// The node is asked to renew its identity, and opens a new connection with it.
	_ = d.control.Send(bus.ToHost(id, message.KindRenew), "", nil) // the node may have gone
	time.Sleep(50 * time.Millisecond)
}

// TestTasksAreBounded: a host does only what is a task, of a bounded size and time.
func TestTasksAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"an order":     `{"token":"x","order":"AAAA"}`,
		"a figure":     `{"token":"x","measure":{"metric":"sent","duration_ms":1000}}`,
		"both":         `{"token":"x","order":"AAAA","measure":{"metric":"sent","duration_ms":1000}}`,
		"neither":      `{"token":"x"}`,
		"no token":     `{"order":"AAAA"}`,
		"a long one":   `{"token":"x","measure":{"metric":"sent","duration_ms":60001}}`,
		"no such":      `{"token":"x","measure":{"metric":"speed","duration_ms":1000}}`,
		"a large one":  `{"token":"x","order":"` + strings.Repeat("AAAA", 3000) + `"}`,
		"not a task":   `[]`,
		"an old token": `{"token":"` + strings.Repeat("x", 65) + `","order":"AAAA"}`,
	} {
		_, err := message.DecodeTask([]byte(text))
		if ok := name == "an order" || name == "a figure"; ok != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
