package desk

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/hub/internal/fleet/swarm"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/order"
)

// counted counts the orders that reach root's agent.
type counted struct {
	mu sync.Mutex
	n  int
}

func (c *counted) Order(context.Context, []byte) (order.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return order.Answer{}, nil
}

func (c *counted) Measure(context.Context, message.Metric, time.Duration) (float64, error) {
	return 0, node.ErrNoTraffic
}

// TestLeave removes the membership of a host while its node runs: the node hands out nothing more
// and ends, and the hub's call to renew does not bring the membership back.
func TestLeave(t *testing.T) {
	d := start(t, options(t))
	address, token := invite(t, d.o.Dir, Request{Uses: 1})
	home, err := join.Prepare(durable.OS(), t.TempDir(), address, token)
	if err != nil {
		t.Fatal(err)
	}
	tasks, connected, ended := &counted{}, make(chan struct{}, 8), make(chan error, 1)
	go func() {
		ended <- node.Run(t.Context(), node.Options{Home: home, Source: swarm.NewHost(0, 1000), Tasks: tasks, Version: "1.0",
			About: join.About{Name: "h"}, Connected: func() { connected <- struct{}{} }})
	}()
	<-connected
	if err := home.Leave(); err != nil {
		t.Fatal(err)
	}
	// What is sent before the node has subscribed is lost.
	for over := false; !over; {
		_ = d.control.Send(bus.ToHost(home.ID, message.KindRenew), "", nil)
		_ = d.control.Send(bus.ToHost(home.ID, message.KindTask), "", []byte(`{"token":"x","order":"AAAA"}`))
		select {
		case err := <-ended:
			if over = true; !errors.Is(err, join.ErrLeft) {
				t.Errorf("the node ends with %v", err)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	if tasks.n != 0 || !home.Left() {
		t.Errorf("%d orders reached the agent; left: %v", tasks.n, home.Left())
	}
	if err := home.Ask(t.Context(), join.About{Name: "h"}); !errors.Is(err, join.ErrLeft) || !home.Left() {
		t.Errorf("renew: %v", err)
	}
}
