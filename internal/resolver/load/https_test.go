package load

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/resolver/answer"
)

// TestHTTPSAgainstAnotherServer sends requests to the HTTP/2 server of the standard library, which
// asks ours over UDP.
func TestHTTPSAgainstAnotherServer(t *testing.T) {
	t.Parallel()
	// Each try has servers of its own: late queries of one would move the faults of the next.
	r, err := settled(20, 20, func(timeout time.Duration) (*Result, error) {
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
			conn, err := net.Dial("udp", behind.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := conn.Write(query); err != nil {
				t.Error(err)
			}
			answer := make([]byte, 4096)
			n, err := conn.Read(answer)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/dns-message")
			_, _ = w.Write(answer[:n]) // likewise
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
			if err != nil {
				return
			}
			if len(m) > 1<<16 {
				t.Fatalf("an answer of %d octets", len(m))
			}
		}
	})
}
