package desk

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/gather"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
)

// way is the way of a conductor to the hosts. Orders have a connection of their own.
type way struct {
	d    *Desk
	conn *bus.Conn

	mu      sync.Mutex
	waiting map[string]chan message.Done // by host and token
}

// Bounds of the report of a host. The agent remembers 1000 orders, of some 500 bytes each. The hub
// reads many reports at a time, so a host that lies must not take more memory than one that does
// not.
const (
	mostReport = 2 << 20 // bytes
	mostOrders = 2000
)

// decodeReport reads the report of a host, which is the word of a stranger.
func decodeReport(b []byte) (executor.Report, error) {
	var r executor.Report
	var whole struct {
		Orders []json.RawMessage `json:"orders"`
	}
	if err := json.Unmarshal(b, &whole); err != nil {
		return r, err
	}
	if n := len(whole.Orders); n > mostOrders {
		return r, fmt.Errorf("%d orders, more than %d", n, mostOrders)
	}
	return r, json.Unmarshal(b, &r)
}

// errAbsent reports a host that is not connected.
var errAbsent = errors.New("not connected")

func newWay(d *Desk, conn *bus.Conn) (*way, error) {
	w := &way{d: d, conn: conn, waiting: make(map[string]chan message.Done)}
	_, err := conn.Subscribe(bus.FromHost("*", message.TaskDone(">")), w.take)
	return w, err
}

// take hands an answer to who waits for it. The host is part of the subject, which the bus checks:
// no host answers for another.
func (w *way) take(m bus.Message) {
	id, kind, ok := bus.Sender(m.Subject)
	if !ok || len(m.Data) > message.MostDone {
		return
	}
	w.mu.Lock()
	c := w.waiting[id+"."+kind]
	w.mu.Unlock()
	if c == nil {
		return // late
	}
	var d message.Done
	if m.Absent {
		d.Error = errAbsent.Error()
	} else if json.Unmarshal(m.Data, &d) != nil {
		d = message.Done{Error: "the answer is not one of this protocol"}
	}
	select {
	case c <- d:
	default: // a host that answers twice
	}
}

// do hands a task to a host and waits for the answer.
func (w *way) do(ctx context.Context, host string, t message.Task) (message.Done, error) {
	id := conduct.MemberOf(host)
	if err := ctx.Err(); err != nil { // the client has gone
		return message.Done{}, fmt.Errorf("ask host %s: %w", id, err)
	}
	t.Token = rand.Text()
	kind := message.TaskDone(t.Token)
	came := make(chan message.Done, 1)
	w.mu.Lock()
	w.waiting[id+"."+kind] = came
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.waiting, id+"."+kind)
		w.mu.Unlock()
	}()
	b, err := json.Marshal(t)
	if err == nil {
		err = w.conn.Send(bus.ToHost(id, message.KindTask), bus.FromHost(id, kind), b)
	}
	if err != nil {
		return message.Done{}, fmt.Errorf("ask host %s: %w", id, err)
	}
	select {
	case <-ctx.Done():
		return message.Done{}, fmt.Errorf("ask host %s: %w", id, ctx.Err())
	case d := <-came:
		if d.Error != "" {
			return d, fmt.Errorf("ask host %s: %.400s", id, d.Error)
		}
		return d, nil
	}
}

// Order implements conduct.Hosts.
func (w *way) Order(ctx context.Context, host string, envelope []byte) (order.Answer, error) {
	d, err := w.do(ctx, host, message.Task{Order: bytes.Clone(envelope)})
	if err == nil && d.Answer == nil {
		err = fmt.Errorf("ask host %s: no answer to an order", host)
	}
	if err != nil {
		return order.Answer{}, err
	}
	return *d.Answer, nil
}

// Measure implements conduct.Hosts.
func (w *way) Measure(ctx context.Context, host string, m message.Figure) (float64, error) {
	d, err := w.do(ctx, host, message.Task{Measure: &m})
	if err == nil && d.Value == nil {
		err = fmt.Errorf("ask host %s: no figure", host)
	}
	if err != nil {
		return 0, err
	}
	return *d.Value, nil
}

// Report implements conduct.Hosts.
func (w *way) Report(ctx context.Context, host, rollout string) (executor.Report, error) {
	var r executor.Report
	name := node.DocumentOrders
	if rollout != "" {
		name += "/" + rollout
	}
	got := w.d.bulk.Small(ctx, name, conduct.MemberOf(host), "", mostReport)
	switch {
	case errors.Is(got.Err, fs.ErrNotExist):
		return r, errors.New("no agent with --orders runs there")
	case got.Err != nil:
		return r, got.Err
	}
	r, err := decodeReport(got.Data)
	if err != nil {
		return r, fmt.Errorf("read the report of host %s: %w", host, err)
	}
	return r, nil
}

// Knob implements conduct.Hosts.
func (w *way) Knob(ctx context.Context, hosts []string, id knob.ID) (map[string]conduct.Reading, error) {
	ids := make([]string, len(hosts))
	for i, h := range hosts {
		ids[i] = conduct.MemberOf(h)
	}
	g, err := w.d.asks.Ask(ctx, gather.Question{Verb: node.VerbKnob, Args: []string{string(id)}, IDs: ids})
	if err != nil {
		return nil, err
	}
	all := make(map[string]conduct.Reading, len(g.Answers))
	for member, a := range g.Answers {
		r := conduct.Reading{Error: a.Error}
		var values map[string]string
		if a.Error == "" && json.Unmarshal(a.Data, &values) == nil {
			r.Value = knob.Value(values[string(id)])
		}
		switch r.Value {
		case node.NotThere, node.NotPermitted, node.NotSupported:
			r.Error = string(r.Value)
		}
		all[conduct.OrderHost(member)] = r
	}
	return all, nil
}

// Seen implements conduct.Hosts.
func (w *way) Seen(host string) time.Time {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.d.seen[conduct.MemberOf(host)]
}

// candidates returns the members of a selection as a plan wants them.
func (d *Desk) candidates(selection string) ([]conduct.Candidate, error) {
	chosen, _, err := d.choose(selection)
	if err != nil {
		return nil, err
	}
	ids, _ := members(chosen)
	member := make(map[string]bool, len(ids))
	for _, id := range ids {
		member[id] = true
	}
	var all []conduct.Candidate
	for _, h := range chosen {
		if !member[h.ID] {
			continue
		}
		c := conduct.Candidate{Name: h.Name}
		c.Host.ID, c.Host.Class = conduct.OrderHost(h.ID), h.Class
		if role := h.Labels["role"]; role != "" && h.Class != "" {
			c.Host.Class = strings.TrimSpace(c.Host.Class + " " + role)
		}
		c.Host.Rack, c.Host.Quorum, c.Host.Site = h.Labels["rack"], h.Labels["quorum"], h.Labels["site"]
		all = append(all, c)
	}
	return all, nil
}
