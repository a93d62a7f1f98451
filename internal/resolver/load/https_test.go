package load

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/resolver/answer"
	"github.com/linerate/linerate/internal/resolver/message"
)

// TestHTTPSAgainstAnotherServer sends requests to the HTTP/2 server of the standard library, which
// asks ours over UDP.
func TestHTTPSAgainstAnotherServer(t *testing.T) {
	t.Parallel()
	// Each try has servers of its own: late queries of one would move the faults of the next.
	r, err := settled(20, expected{message.Short, 20}, func(timeout time.Duration) (*Result, error) {
		behind := serve(t, answer.Options{Faults: answer.Faults{Every: map[answer.Fault]uint64{answer.WrongID: 50}}})
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query, err := io.ReadAll(r.Body)
			if err != nil {
				return // a client whose timeout has passed; the counts show any other error
			}
			if r.ProtoMajor != 2 || r.Method != http.MethodPost || r.URL.Path != "/dns-query" ||
				r.Header.Get("Content-Type") != "application/dns-message" || len(query) < 12 {
				t.Errorf("request is %s %s %s, %d octets", r.Proto, r.Method, r.URL.Path, len(query))
			}
			w.Header().Set("Content-Type", "application/dns-message")
			_, _ = w.Write(relayed(t, query, behind)) // likewise
		}))
		web.EnableHTTP2 = true
		web.StartTLS()
		defer web.Close()
		return Run(t.Context(), Options{Server: netip.MustParseAddrPort(web.Listener.Addr().String()), Transport: HTTPS,
			Mode: Closed, Outstanding: 300, Sockets: 2, Queries: 1000, Timeout: timeout, Duration: MaxDuration,
			Names: questions(t)}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Queries != 1000 || r.Answers != 980 || r.WrongTotal != 20 || r.Lost != 20 {
		t.Errorf("got %+v, %+v, %v", r.Counts, r.Wrong, r.Warnings)
	}
}

// relayed asks the server behind a gateway and returns its answer.
func relayed(t *testing.T, query []byte, behind *answer.Server) []byte {
	conn, err := net.Dial("udp", behind.Addr().String())
	if err != nil {
		t.Error(err)
		return nil
	}
	defer conn.Close()
	if _, err := conn.Write(query); err != nil {
		t.Error(err)
	}
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil {
		t.Error(err)
	}
	return b[:n]
}

// TestHTTPSServerThatLeaves lets a server say that it takes no further requests while it answers
// one: that answer counts.
func TestHTTPSServerThatLeaves(t *testing.T) {
	t.Parallel()
	r, err := settled(0, expected{}, func(timeout time.Duration) (*Result, error) {
		behind := serve(t, answer.Options{})
		var requests atomic.Int32
		both, gone := make(chan struct{}), make(chan struct{})
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query, _ := io.ReadAll(r.Body)
			answer := relayed(t, query, behind)
			if requests.Add(1) == 1 {
				select { // the first is answered behind the second, which ends the connection
				case <-both:
					<-gone
					time.Sleep(timeout / 4)
				case <-r.Context().Done():
				}
			} else {
				close(both)
				w.Header().Set("Connection", "close")
				defer close(gone)
			}
			_, _ = w.Write(answer)
		}))
		web.EnableHTTP2 = true
		web.StartTLS()
		defer web.Close()
		return Run(t.Context(), Options{Server: netip.MustParseAddrPort(web.Listener.Addr().String()), Transport: HTTPS,
			Mode: Closed, Outstanding: 2, Sockets: 1, Queries: 2, Timeout: timeout, Duration: MaxDuration,
			Names: questions(t)}, nil)
	})
	if err != nil || r.Answers != 2 || r.Lost != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestHTTPSStatus lets a server refuse every second request, as one under too much load does: each
// refusal ended the connection, and with it the queries that waited, and nothing said why.
func TestHTTPSStatus(t *testing.T) {
	t.Parallel()
	const queries = 40
	r, err := settled(queries/2, expected{}, func(timeout time.Duration) (*Result, error) {
		behind := serve(t, answer.Options{})
		var requests atomic.Int32
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1)%2 == 0 {
				// No header changes after the hints: when a client of a short try leaves, the server of
				// the standard library may still read them.
				w.Header().Set("Link", "</early>; rel=preload")
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "busy\n")
				return
			}
			query, _ := io.ReadAll(r.Body)
			answer := relayed(t, query, behind)
			_, _ = w.Write(answer)
		}))
		web.EnableHTTP2 = true
		web.StartTLS()
		defer web.Close()
		return Run(t.Context(), Options{Server: netip.MustParseAddrPort(web.Listener.Addr().String()), Transport: HTTPS,
			Mode: Closed, Outstanding: queries, Sockets: 1, Queries: queries, Timeout: timeout, Duration: MaxDuration,
			Names: questions(t)}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `the server refused 20 requests, which count as lost; the last with http status "503"`
	if r.Answers != queries/2 || r.Lost != queries/2 || r.Connections != 1 || !slices.Contains(r.Warnings, want) {
		t.Errorf("got %+v on %d connections, %q", r.Counts, r.Connections, r.Warnings)
	}
}

// FuzzHTTPSFrames feeds frames of a server to the client.
func FuzzHTTPSFrames(f *testing.F) {
	f.Add(appendFrame(nil, frameSettings, 0, 0, []byte{0, 3, 0, 0, 0, 1}))
	f.Add(appendFrame(appendFrame(nil, frameHeaders, flagEndHeaders, 1, []byte{0x88}), frameData, flagEndStream, 1,
		make([]byte, 12)))
	f.Add(appendFrame(nil, frameHeaders, 0, 1, []byte{0x88}))
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<31))
	f.Fuzz(func(t *testing.T, frames []byte) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			_, _ = far.Write(frames)
			_ = far.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		h := newHTTPS(near, Options{Timeout: time.Minute, Path: "/dns-query"})
		h.streams[1] = &stream{}
		for {
			m, err := h.receive()
			var status statusError
			if err != nil && !errors.As(err, &status) {
				return
			}
			if len(m) > 1<<16 {
				t.Fatalf("an answer of %d octets", len(m))
			}
		}
	})
}

// TestHTTPSReaderGoesOn has a server that answers while it reads nothing: the write of the next
// request held the lock that the reader needs, and both waited for the timeout.
func TestHTTPSReaderGoesOn(t *testing.T) {
	near, far := net.Pipe() // without buffers: a write lasts until it is read
	defer near.Close()
	defer far.Close()
	h := newHTTPS(near, Options{Timeout: time.Hour, Path: "/dns-query"})
	go func() { _ = h.send([][]byte{make([]byte, 12)}) }()
	if _, err := far.Read(make([]byte, 1)); err != nil { // the write has begun
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := h.receive()
		answered <- err
	}()
	frames := appendFrame(nil, framePing, 0, 0, make([]byte, 8))
	frames = appendFrame(frames, frameHeaders, flagEndHeaders, 1, []byte{0x88})
	if _, err := far.Write(appendFrame(frames, frameData, flagEndStream, 1, make([]byte, 12))); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the reader waits for the writer")
	}
	// What the ping asks for follows the request.
	for b := make([]byte, 1<<16); ; {
		n, err := far.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if n == headerOctets+8 && b[3] == framePing && b[4] == flagEndStream {
			return
		}
	}
}

// TestHTTPSServerAsksOn has a server that sends pings and reads no reply. They stay in memory up to
// a bound.
func TestHTTPSServerAsksOn(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	h := newHTTPS(near, Options{Timeout: time.Hour, Path: "/dns-query"})
	ended := make(chan error, 1)
	go func() {
		_, err := h.receive()
		near.Close()
		ended <- err
	}()
	ping := appendFrame(nil, framePing, 0, 0, make([]byte, 8))
	for n := 0; ; n++ {
		if _, err := far.Write(ping); err != nil {
			break
		}
		if n > 2*mostOwed/len(ping) {
			t.Fatalf("%d pings without an end", n)
		}
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "reads none") {
		t.Error(err)
	}
}
