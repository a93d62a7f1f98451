package traffic

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// RR is request and response over TCP, one in flight on each connection.
const RR Test = "rr"

type transactionTest struct{}

func (transactionTest) traits() traits {
	return traits{dials: true, takes: manyStreams | probes | busyPolls | tcpOptions | sourcePorts | gaps}
}

func (transactionTest) fill(s *Spec)        { fillMessages(s) }
func (transactionTest) check(s Spec) string { return checkMessages(s) }

// fillMessages sets the default sizes of request and response: one byte each.
func fillMessages(s *Spec) {
	if s.RequestBytes == 0 {
		s.RequestBytes = 1
	}
	if s.ResponseBytes == 0 {
		s.ResponseBytes = 1
	}
}

// checkMessages is about the sizes of request and response, and the pause before each request.
func checkMessages(s Spec) string {
	if s.RequestBytes < 1 || s.RequestBytes > maxMessageBytes || s.ResponseBytes < 1 ||
		s.ResponseBytes > maxMessageBytes {
		return fmt.Sprintf("request and response must be within 1 to %d bytes", maxMessageBytes)
	}
	if s.Gap > s.Duration {
		return fmt.Sprintf("a pause of %v before each request is longer than the duration", s.Gap)
	}
	return ""
}

func (t transactionTest) near(ctx context.Context, n *nearEnd) (cast, error) {
	workers, err := n.dial(ctx, t.worker(n.spec, n.phase, true))
	return cast{workers: workers, report: reportSpinning(n.spec, workers)}, err
}

// reportSpinning names busy polling in the result; nil: the workers sleep, as most results say.
func reportSpinning(s Spec, workers []*engine.Worker) func(*Result) error {
	if !s.BusyPoll {
		return nil
	}
	return func(r *Result) error {
		r.Method = strings.Replace(engine.Name, "blocking", workers[0].Method, 1)
		return nil
	}
}

func (t transactionTest) far(ctx context.Context, f *farEnd) (cast, error) {
	if err := f.accept(); err != nil {
		return cast{}, err
	}
	workers, err := f.collect(ctx, t.worker(f.spec, f.phase, false))
	return cast{workers: workers}, err
}

// worker returns a function that makes the worker of one end for a connection.
func (transactionTest) worker(s Spec, p *engine.Phase, near bool) makeWorker {
	conn := s.connOptions(true, true)
	o := engine.TransactionOptions{RequestBytes: s.RequestBytes, ResponseBytes: s.ResponseBytes, BusyPoll: s.BusyPoll,
		Pause: s.Gap}
	return func(tcp *net.TCPConn, _ int) (*engine.Worker, error) {
		c, err := engine.Adopt(tcp, conn)
		if err != nil {
			return nil, err
		}
		if near {
			return orClose(c)(engine.NewRequester(p, c, o))
		}
		return orClose(c)(engine.NewResponder(p, c, o))
	}
}

func (transactionTest) interval(i *Interval, _ Direction, own, _ part) { i.transactions(own) }

// transactions fills in the round trips and the rate of the near end's requests.
func (i *Interval) transactions(own part) {
	i.RTTSeconds = own.meanRTT()
	i.TransactionsPerSec = perSecond(own.Transactions, own.End-own.Start)
}

func (transactionTest) result(r *Result, o outcome) (packets uint64) {
	r.TransactionsPerSec = perSecond(o.near.Transactions, o.near.Seconds)
	return o.near.messages()
}
