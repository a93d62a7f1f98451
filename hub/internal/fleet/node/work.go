package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/peer/order"
)

// Work implements [Tasks] on this host.
type Work struct {
	// Agent is root's agent. It should not be shared with readers: an order can take a minute.
	Agent *agent.Client
	// Proc is where procfs is mounted; empty: /proc.
	Proc string
}

// Order implements Tasks.
func (w *Work) Order(ctx context.Context, envelope []byte) (order.Answer, error) {
	return w.Agent.Order(ctx, envelope)
}

// ErrNoTraffic reports that a host carries nothing by which a change can be judged.
var ErrNoTraffic = errors.New("no traffic to judge by")

// Measure implements Tasks: it reads counters twice and sends nothing.
func (w *Work) Measure(ctx context.Context, m message.Metric, over time.Duration) (float64, error) {
	before, err := w.count(m)
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", m, err)
	}
	start := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(over):
	}
	after, err := w.count(m)
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", m, err)
	}
	took := time.Since(start).Seconds()
	v, err := before.to(after, m, took)
	if err != nil {
		return 0, fmt.Errorf("measure %s for %.0f s: %w", m, took, err)
	}
	return v, nil
}

// counted is what the counters hold at one moment.
type counted struct{ some, of float64 }

// to returns the metric between two moments. Retransmits have one segment added to the count, so
// that a window without any still has a logarithm.
func (c counted) to(later counted, m message.Metric, seconds float64) (float64, error) {
	some, of := later.some-c.some, later.of-c.of
	switch {
	case some < 0 || of < 0:
		return 0, errors.New("a counter went back: an interface has gone meanwhile")
	case m == message.Retransmits && of == 0, m != message.Retransmits && some == 0:
		return 0, ErrNoTraffic
	case m == message.Retransmits:
		return (some + 1) / (of + 1), nil
	}
	return some / seconds, nil
}

// count reads the counters of a metric, of the network namespace of this process.
func (w *Work) count(m message.Metric) (counted, error) {
	proc := w.Proc
	if proc == "" {
		proc = "/proc"
	}
	counts := procfs.NewCounts(1024)
	if m == message.Retransmits {
		b, err := os.ReadFile(proc + "/net/snmp")
		if err == nil {
			err = procfs.ParseSNMP(b, counts)
		}
		return counted{float64(counts.Values["Tcp.RetransSegs"]), float64(counts.Values["Tcp.OutSegs"])}, err
	}
	column := ".rx_bytes"
	if m == message.Sent {
		column = ".tx_bytes"
	}
	b, err := os.ReadFile(proc + "/net/dev")
	if err == nil {
		err = procfs.ParseDev(b, counts)
	}
	var c counted
	for _, name := range counts.Interfaces {
		if name != "lo" {
			c.some += float64(counts.Values["nic."+name+column])
		}
	}
	return c, err
}
