package dialect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// lies are what a hostile server does to the answers of an honest one.
var lies = map[string]func(p []byte) []byte{
	"gigantic numbers": func(p []byte) []byte { return number.ReplaceAllFunc(p, fill('9')) },
	"exponents": func(p []byte) []byte {
		return value.ReplaceAllFunc(p, func(n []byte) []byte { return append([]byte(":9e"), fill('9')(n[3:])...) })
	},
	"negative numbers": func(p []byte) []byte {
		return value.ReplaceAllFunc(p, func(n []byte) []byte { return append([]byte(":-"), n[2:]...) })
	},
	"nearly the largest": func(p []byte) []byte {
		return value.ReplaceAllFunc(p, func(n []byte) []byte { return append([]byte(":"), fill('9')(n[1:])...) })
	},
	"not a number": func(p []byte) []byte { return number.ReplaceAllFunc(p, fill('e')) },
	"all ones":     func(p []byte) []byte { return after(p, 0xff) },
	"largest":      func(p []byte) []byte { return after(p, 0x7f) },
	"smallest":     func(p []byte) []byte { return after(p, 0x80) },
	"zeros":        func(p []byte) []byte { return after(p, 0) },
	"backwards": func(p []byte) []byte {
		for i, j := 0, len(p)-1; i < j; i, j = i+1, j-1 {
			p[i], p[j] = p[j], p[i]
		}
		return p
	},
	"cut short": func(p []byte) []byte { return p[:len(p)/2] },
	"twice":     func(p []byte) []byte { return append(bytes.Clone(p), p...) },
	"silence":   func([]byte) []byte { return nil },
	"endless":   nil,
}

// number is every number in text; a value is one of a JSON object that is no name of a stream.
var (
	number = regexp.MustCompile(`[0-9]+`)
	value  = regexp.MustCompile(`:[0-9]{3,}`)
)

func fill(with byte) func([]byte) []byte {
	return func(n []byte) []byte { return bytes.Repeat([]byte{with}, len(n)) }
}

// after keeps the head of an answer, by which a client knows its test.
func after(p []byte, with byte) []byte {
	for i := 16; i < len(p); i++ {
		p[i] = with
	}
	return p
}

// liar passes the connections and datagrams of a client on to a server, and lies about the answers.
func liar(t *testing.T, to string, lie func([]byte) []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	u, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), u.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				return
			}
			go func() {
				// Not by splice(2), whose pipes stay open until the garbage is collected.
				_, _ = io.Copy(struct{ io.Writer }{far}, struct{ io.Reader }{near})
				_ = far.(*net.TCPConn).CloseWrite()
			}()
			go func() {
				defer near.Close()
				defer far.Close()
				answer(near, far, lie)
			}()
		}
	}()
	go func() {
		flows := make(map[string]net.Conn)
		defer func() {
			for _, far := range flows {
				_ = far.Close()
			}
		}()
		buf := make([]byte, 1<<16)
		for {
			n, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			far := flows[from.String()]
			if far == nil {
				if far, err = net.Dial("udp", to); err != nil {
					return
				}
				flows[from.String()] = far
				go answer(writerTo{u, from}, far, lie)
			}
			_, _ = far.Write(buf[:n])
		}
	}()
	return at
}

// answer copies what far says to near, with lies; an endless one repeats its first answer until the
// client has had enough.
func answer(near io.Writer, far io.Reader, lie func([]byte) []byte) {
	buf := make([]byte, 1<<16)
	for {
		n, err := far.Read(buf)
		if n > 0 && lie == nil {
			for {
				if _, err := near.Write(buf[:n]); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
		if n > 0 {
			if _, err := near.Write(lie(buf[:n])); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// writerTo sends datagrams to one client.
type writerTo struct {
	c  net.PacketConn
	to net.Addr
}

func (w writerTo) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return w.c.WriteTo(p, w.to)
}

// TestHostileServers runs the clients of all dialects against servers that lie. Each ends within
// its time and a bounded wait, with an error or with a result whose figures are possible.
func TestHostileServers(t *testing.T) {
	testenv.Need(t, testenv.Long) // some clients wait ten seconds for an answer
	data := uint16(freePort(t))
	s, _ := serve(t, []Acceptance{{"iperf3", uint16(freePort(t))}, {"iperf2", uint16(freePort(t))},
		{"ttcp", uint16(freePort(t))}, {"nuttcp", uint16(freePort(t))}, {"sockperf", uint16(freePort(t))},
		{"stamp", uint16(freePort(t))}}, admission.Limits{Clients: 1000, ClientsPerSource: 1000})
	const length = 200 * time.Millisecond
	stream := []traffic.Spec{
		{Test: traffic.Stream, Duration: length, RateBitsPerSec: 8e6},
		{Test: traffic.UDP, Duration: length, RateBitsPerSec: 2e6, PacketBytes: 500},
	}
	ping := traffic.Spec{Test: traffic.Ping, Duration: length, Gap: 10 * time.Millisecond}
	tests := map[string][]traffic.Spec{
		"iperf3": append(stream, traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Duration: length},
			traffic.Spec{Test: traffic.UDP, Direction: traffic.Down, Duration: length, RateBitsPerSec: 2e6}),
		"iperf2":   append(stream, traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Duration: length}),
		"ttcp":     stream[:1],
		"nuttcp":   stream,
		"sockperf": {{Test: traffic.RR, Duration: length}, ping},
		"stamp":    {ping},
	}
	for _, p := range s.Places() {
		t.Run(p.Dialect, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			for name, lie := range lies {
				for _, spec := range tests[p.Dialect] {
					label := fmt.Sprintf("%s %s %s", name, spec.Test, spec.Direction)
					at := liar(t, p.Address.String(), lie)
					all.Go(func() {
						began := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						r, err := Run(ctx, p.Dialect, at, spec, ClientOptions{DataPort: int(data)}, nil)
						t.Logf("%s: %.1f s: %v", label, time.Since(began).Seconds(), err)
						switch {
						case errors.Is(err, context.DeadlineExceeded):
							t.Errorf("%s: kept for a minute", label)
						case err == nil:
							for _, s := range impossible(t, r) {
								t.Errorf("%s: %s", label, s)
							}
						}
					})
				}
			}
			all.Wait()
		})
	}
}

// impossible returns the figures of a result that no test of this length on one host has.
func impossible(t *testing.T, r *traffic.Result) (all []string) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		return []string{err.Error()}
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(at+"."+k, x)
			}
		case []any:
			for _, x := range v {
				walk(at, x)
			}
		case string:
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				all = append(all, fmt.Sprintf("%s: %q", at, v))
			}
		case float64:
			most := 1e15
			switch {
			case strings.HasSuffix(at, "_ratio"):
				most = 1
			case strings.HasSuffix(at, "_seconds"):
				most = 60
			case strings.HasSuffix(at, "_bits_per_second"):
				most = 2e12
			case strings.HasSuffix(at, "_packets_total"):
				most = 1e9
			}
			if v < 0 || v > most {
				all = append(all, fmt.Sprintf("%s is %g", at, v))
			}
		}
	}
	walk("", doc)
	if u := r.UDP; u != nil && (u.Lost > u.Sent || u.Received > u.Sent+1) {
		all = append(all, fmt.Sprintf("%d sent, %d received, %d lost", u.Sent, u.Received, u.Lost))
	}
	return all
}
