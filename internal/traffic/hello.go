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
)

const (
	// helloEvery is how often a near socket sends a hello until it hears one. A round trip that
	// takes longer costs a few more hellos.
	helloEvery = 100 * time.Millisecond
	// helloThreads bounds how many sockets send hellos at the same time: each wait holds a thread.
	helloThreads = 32
	// answerEvery is how often the far end looks for hellos whose answer was lost.
	answerEvery = 20 * time.Millisecond
)

// sayHello opens the near sockets and proves their addresses to the far end, which answers each
// hello from the socket that will carry the stream. Every router and firewall on the path has then
// seen packets in both directions.
func sayHello(ctx context.Context, to netip.AddrPort, token echo.Token,
	options []datagram.SocketOptions) ([]*datagram.Socket, error) {
	sockets, errs := make([]*datagram.Socket, len(options)), make([]error, len(options))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	free := make(chan struct{}, helloThreads)
	var wg sync.WaitGroup
	for i := range sockets {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			var err error
			if sockets[i], err = datagram.Dial(to, options[i]); err == nil {
				err = hello(ctx, sockets[i], token, i)
			}
			if err != nil {
				errs[i] = fmt.Errorf("open stream %d over udp: %w", i, err)
				cancel() // one missing socket makes the rest useless
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

// hello sends hellos on one socket until its answer arrives or ctx ends.
func hello(ctx context.Context, s *datagram.Socket, token echo.Token, index int) error {
	var out, in [echo.HelloBytes]byte
	echo.PutHello(out[:], token, index)
	for said := 0; ; said++ {
		if ctx.Err() != nil {
			if cause := context.Cause(ctx); !errors.Is(cause, ErrPeerGone) {
				return cause
			}
			return fmt.Errorf("%w to %d packets: do all firewalls on the path let udp port %d of %s pass?", ErrNoAnswer,
				said, s.RemoteAddr().Port(), s.RemoteAddr().Addr())
		}
		// A packet that could not be sent, or an error that the network reports about an earlier
		// one, counts as lost.
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

// hearHellos opens the sockets of the far end: one for each near socket that has proved its
// address, on the port of the echo server. It answers hellos until stop is called, because an
// answer can be lost; stop waits until nothing reads from the sockets any more.
func hearHellos(ctx context.Context, s *session, server *echo.Server, token echo.Token,
	options []datagram.SocketOptions) (sockets []*datagram.Socket, stop func(), err error) {
	expected, err := server.Expect(token, len(options))
	if err != nil {
		return nil, nil, err
	}
	defer expected.Close()
	ctx, cancel := s.within(ctx, s.timing.Setup,
		fmt.Errorf("wait for hellos over udp: %w: not all of %d within %v", ErrPeerGone, len(options),
			s.timing.Setup))
	defer cancel()
	var answering greeter
	stop = answering.start(token)
	sockets = make([]*datagram.Socket, len(options))
	fail := func(err error) ([]*datagram.Socket, func(), error) {
		stop()
		closeSockets(sockets)
		return nil, nil, err
	}
	for range sockets {
		select {
		case a := <-expected.Arrivals():
			socket, err := datagram.Connected(a.To, a.From, options[a.Index])
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

// start begins to answer; the returned function ends it, and may be called more than once.
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

// add answers the hello that the echo server has heard, and later ones that arrive on the socket
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
	_ = s.Send(out[:]) // if it is lost, the near end asks again
}

// repeat answers what has arrived since the last time, one hello of each socket.
func (g *greeter) repeat() {
	g.mu.Lock()
	defer g.mu.Unlock()
	var in [echo.HelloBytes]byte
	for i, s := range g.sockets {
		n, err := s.Receive(in[:], 0)
		if err != nil {
			continue // nothing there, or an error that the network reports about an earlier packet
		}
		if index, ok := echo.ParseHello(in[:n], g.token); ok && index == g.indexes[i] {
			g.answer(s, index)
		}
	}
}
