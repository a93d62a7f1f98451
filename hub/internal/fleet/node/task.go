package node

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/message"
)

// takeTask queues a task that was sent to this host. What is sent to all or to a group is no task:
// an order is for one host.
func (n *Node) takeTask(m bus.Message) {
	if m.Subject != bus.ToHost(n.id, message.KindTask) {
		return
	}
	select {
	case n.tasks <- m:
	default:
		n.o.Log.Warn("more tasks than one at a time; one is refused")
		if t, err := message.DecodeTask(m.Data); err == nil {
			n.done(t, message.Done{Error: fmt.Sprintf("%d tasks are waiting already", waitingTasks)})
		}
	}
}

// doTasks does what is queued, one after the other, until the context ends.
func (n *Node) doTasks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-n.tasks:
			t, err := message.DecodeTask(m.Data)
			if err != nil {
				n.o.Log.Warn("a task is not readable", "error", err)
				if t.Token != "" && len(t.Token) <= 64 {
					n.done(t, message.Done{Error: err.Error()})
				}
				continue
			}
			n.done(t, n.do(ctx, t))
		}
	}
}

// do does one task.
func (n *Node) do(ctx context.Context, t message.Task) message.Done {
	var d message.Done
	if n.o.Tasks == nil {
		return message.Done{Error: "this host takes no tasks"}
	}
	if t.Measure != nil {
		v, err := n.o.Tasks.Measure(ctx, t.Measure.Metric, time.Duration(t.Measure.DurationMS)*time.Millisecond)
		if err != nil {
			return message.Done{Error: fmt.Sprintf("%.300s", err.Error())}
		}
		d.Value = &v
		return d
	}
	a, err := n.o.Tasks.Order(ctx, t.Order)
	if err != nil {
		return message.Done{Error: fmt.Sprintf("%.300s", err.Error())}
	}
	d.Answer = &a
	n.o.Log.Info("an order is answered", "order", a.Order, "code", a.Code)
	return d
}

// done sends the answer to a task. If it is lost, the hub sends an order again.
func (n *Node) done(t message.Task, d message.Done) {
	b, err := json.Marshal(d)
	if err == nil && len(b) > message.MostDone {
		d = message.Done{Error: fmt.Sprintf("the answer has %d bytes, more than %d", len(b), message.MostDone)}
		b, err = json.Marshal(d)
	}
	if err == nil {
		err = n.conn.Send(bus.FromHost(n.id, message.TaskDone(t.Token)), "", b)
	}
	if err != nil {
		n.o.Log.Info("an answer is lost", "error", err)
	}
}
