package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

const (
	// helloEvery is how often a near socket says hello until it is heard. A round trip that takes
	// longer costs some hellos more, no harm done.
	helloEvery = 100 * time.Millisecond
	// helloThreads bounds how many sockets say hello at the same time: each wait holds a thread.
	helloThreads = 32
	// answerEvery is how often the far side looks for hellos whose answer was lost.
	answerEvery = 20 * time.Millisecond
)

// socketOptions are those of both ends of socket index.
func socketOptions(s Spec, index int, near bool) datagram.SocketOptions {
	o := datagram.SocketOptions{WindowBytes: s.WindowBytes, TOS: s.TOS, DontFragment: s.DontFragment,
		BusyPoll: s.BusyPoll}
	if near && s.SourcePort != 0 {
		o.LocalPort = s.SourcePort + index
	}
	return o
}

// sendOptions share rate and amount among the streams of a direction: what does not divide goes to
// the first ones.
func sendOptions(s Spec, index int) datagram.SendOptions {
	n := int64(s.Streams)
	o := datagram.SendOptions{
		Bytes: s.PacketBytes, Batch: datagram.Batch(s.Batch),
		BitRate: s.RateBitsPerSec / float64(n), PacketRate: s.RatePacketsPerSec / float64(n),
	}
	if s.Bytes > 0 {
		o.PayloadBytes = s.Bytes / n
		if int64(index)%n < s.Bytes%n {
			o.PayloadBytes++
		}
	}
	return o
}

// newDatagramWorkers makes the workers of one side on sockets; when it fails they stay the
// caller's.
func newDatagramWorkers(spec Spec, p *engine.Phase, sockets []*datagram.Socket, near bool) ([]*engine.Worker,
	[]datagram.Port, error) {
	workers, ports := make([]*engine.Worker, len(sockets)), make([]datagram.Port, len(sockets))
	for i, socket := range sockets {
		var err error
		if spec.NearSends(i) == near {
			workers[i], ports[i].Sender, err = datagram.NewSender(p, socket, sendOptions(spec, i))
		} else {
			o := datagram.ReceiveOptions{Bytes: spec.PacketBytes, Batch: datagram.Batch(spec.Batch), Verify: true}
			workers[i], ports[i].Receiver, err = datagram.NewReceiver(p, socket, o)
		}
		if err != nil {
			if errors.Is(err, datagram.ErrBadOptions) {
				err = fmt.Errorf("%w: %w", ErrBadSpec, err)
			}
			return nil, nil, err
		}
	}
	return workers, ports, nil
}

func closeSockets(sockets []*datagram.Socket) {
	for _, s := range sockets {
		if s != nil {
			s.Close()
		}
	}
}

// sayHello opens the near sockets and proves their addresses to the far side, which answers each
// hello from the socket that will carry the stream. Every router and firewall on the way has then
// seen packets in both directions.
func (l Link) sayHello(ctx context.Context, spec Spec, to netip.AddrPort,
	token echo.Token) ([]*datagram.Socket, error) {
	sockets, errs := make([]*datagram.Socket, spec.Sockets()), make([]error, spec.Sockets())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	free := make(chan struct{}, helloThreads)
	var wg sync.WaitGroup
	for i := range sockets {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			var err error
			if sockets[i], err = datagram.Dial(to, socketOptions(spec, i, true)); err == nil {
				err = hello(ctx, sockets[i], token, i)
			}
			if err != nil {
				errs[i] = fmt.Errorf("open stream %d over udp: %w", i, err)
				cancel() // one that is missing makes the others useless
			}
		})
	}
	wg.Wait()
	if err := firstError(errs); err != nil {
		closeSockets(sockets)
		return nil, err
	}
	return sockets, nil
}

// hello says hello on one socket until its answer comes or ctx ends.
func hello(ctx context.Context, s *datagram.Socket, token echo.Token, index int) error {
	var out, in [echo.HelloBytes]byte
	echo.PutHello(out[:], token, index)
	for said := 0; ; said++ {
		if ctx.Err() != nil {
			if cause := context.Cause(ctx); !errors.Is(cause, ErrPeerGone) {
				return cause
			}
			return fmt.Errorf("%w to %d packets: does every firewall between let udp port %d of %s pass?", ErrNoAnswer,
				said, s.RemoteAddr().Port(), s.RemoteAddr().Addr())
		}
		// What could not be sent, or what the network says of an earlier packet, is lost like any
		// other.
		_ = s.Send(out[:])
		for until := time.Now().Add(helloEvery); ; {
			n, err := s.Receive(in[:], time.Until(until))
			if err != nil {
				break
			}
			if heard, ok := echo.ParseHello(in[:n], token); ok && heard == index {
				return nil
			}
		}
		// An error that the network reports comes at once, and must not turn the wait into a flood.
		select {
		case <-ctx.Done():
		case <-time.After(helloEvery / 4):
		}
	}
}

// hearHellos takes in the sockets of the far side: one for each near end that has proved its
// address, on the port of the echo server. It answers hellos until stop is called, because an
// answer can be lost; stop waits until nobody reads from the sockets any more.
func (r *Responder) hearHellos(ctx context.Context, s *session, spec Spec,
	token echo.Token) (sockets []*datagram.Socket, stop func(), err error) {
	expected, err := r.Echo.Expect(token, spec.Sockets())
	if err != nil {
		return nil, nil, err
	}
	defer expected.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, s.timing.Setup,
		fmt.Errorf("wait for hellos over udp: %w: not all of %d within %v", ErrPeerGone, spec.Sockets(),
			s.timing.Setup))
	defer cancel()
	var answering greeter
	stop = answering.start(token)
	sockets = make([]*datagram.Socket, spec.Sockets())
	fail := func(err error) ([]*datagram.Socket, func(), error) {
		stop()
		closeSockets(sockets)
		return nil, nil, err
	}
	for range sockets {
		select {
		case a := <-expected.Arrivals():
			socket, err := datagram.Connected(a.To, a.From, socketOptions(spec, a.Index, false))
			if err != nil {
				return fail(fmt.Errorf("answer stream %d over udp: %w", a.Index, err))
			}
			sockets[a.Index] = socket
			answering.add(socket, a.Index)
		case m := <-s.in:
			if m.Type != msgBeat {
				return fail(unexpected(m))
			}
		case <-s.done():
			return fail(s.cause())
		case <-ctx.Done():
			return fail(context.Cause(ctx))
		}
	}
	return sockets, stop, nil
}

// greeter answers hellos on the far sockets.
type greeter struct {
	token   echo.Token
	mu      sync.Mutex
	sockets []*datagram.Socket
	indexes []int
}

// start begins to answer; the returned function ends it, and may be called again.
func (g *greeter) start(token echo.Token) (stop func()) {
	g.token = token
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(answerEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				g.repeat()
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() { close(quit) })
		<-done
	}
}

// add answers the hello that the echo server has heard, and those that will come on the socket
// itself.
func (g *greeter) add(s *datagram.Socket, index int) {
	g.answer(s, index)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sockets, g.indexes = append(g.sockets, s), append(g.indexes, index)
}

func (g *greeter) answer(s *datagram.Socket, index int) {
	var out [echo.HelloBytes]byte
	echo.PutHello(out[:], g.token, index)
	_ = s.Send(out[:]) // one that is lost here is asked for again
}

// repeat answers what has come since the last time, one hello of each socket.
func (g *greeter) repeat() {
	g.mu.Lock()
	defer g.mu.Unlock()
	var in [echo.HelloBytes]byte
	for i, s := range g.sockets {
		n, err := s.Receive(in[:], 0)
		if err != nil {
			continue // nothing there, or the network's word on a packet of ours
		}
		if index, ok := echo.ParseHello(in[:n], g.token); ok && index == g.indexes[i] {
			g.answer(s, index)
		}
	}
}
