package load

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/resolver/answer"
)

// TestConnectionsThatEnd has a server that ends each connection at its first query, as dnsmasq does
// at the hundredth: the queries behind it counted as lost, and nothing said why.
func TestConnectionsThatEnd(t *testing.T) {
	t.Parallel()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 1)) // a load that has ended sends nothing
			}()
		}
	}()
	r, err := Run(t.Context(), Options{Server: l.Addr().(*net.TCPAddr).AddrPort(), Transport: TCP, Mode: Closed,
		Outstanding: 20, Sockets: 1, Queries: 60, Timeout: MaxTimeout, Names: questions(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 60 || !slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.Contains(w, "connections ended while 60 queries waited")
	}) {
		t.Errorf("%+v, %q", r.Counts, r.Warnings)
	}
}

// TestServerRestarts ends a server during a load and starts it again: the load ended with an error
// over connections, and its result was gone.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	for _, transport := range []Transport{UDP, TCP, TLS} {
		for _, mode := range []Mode{Open, Closed} {
			t.Run(string(transport)+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				ports := testenv.FreePorts(t, 2)
				o := answer.Options{Listen: netip.AddrPortFrom(loopback.Addr(), uint16(ports)),
					ListenTLS: netip.AddrPortFrom(loopback.Addr(), uint16(ports+1))}
				start := func() *answer.Server {
					s, err := answer.Start(o)
					if err != nil {
						t.Error(err)
						return nil
					}
					return s
				}
				s := start()
				if s == nil {
					return
				}
				at := s.Addr()
				if transport == TLS {
					at = s.AddrTLS()
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// What the load has seen decides when the server ends, and when it is back.
				const before, away, after = 0, 1, 2
				state, vain := before, 0
				r, err := Run(ctx, Options{Server: at, Transport: transport, Mode: mode, Rate: 200, Outstanding: 8, Sockets: 4,
					Duration: MaxDuration, Timeout: 250 * time.Millisecond, Interval: leastInterval, Names: questions(t)},
					func(i Interval) {
						switch {
						case state == before && i.AnswersPerSecond > 0:
							state = away
							_ = s.Close() // nothing is unwritten
						case state == away && i.AnswersPerSecond == 0 && i.QueriesPerSecond > 0:
							// Those of the first intervals may have been written to connections that had just ended.
							if vain++; vain == 3 {
								state = after
								s = start()
							}
						case state == after && i.AnswersPerSecond > 0:
							cancel()
						}
					})
				if s != nil {
					_ = s.Close() // likewise
				}
				if err != nil {
					t.Fatal(err)
				}
				if r.Answers == 0 || r.Lost == 0 || r.Answers+r.Lost+r.Interrupted != r.Queries {
					t.Errorf("got %+v", r.Counts)
				}
				warned := slices.ContainsFunc(r.Warnings, func(w string) bool {
					return strings.Contains(w, "accepted no connection")
				})
				if warned != (transport != UDP) {
					t.Errorf("warnings are %q", r.Warnings)
				}
			})
		}
	}
}
