package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestIdleConnectionsLockNobodyOut takes every place, with connections that are idle, that say
// nothing, or that send half a request, and then opens the page.
func TestIdleConnectionsLockNobodyOut(t *testing.T) {
	s := serve(t, Options{Address: "127.0.0.1:0"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "page")
	}))
	address := s.Addr().String()
	for name, begin := range map[string]string{
		"idle":           "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"silent":         "",
		"half a request": "G",
	} {
		t.Run(name, func(t *testing.T) {
			for range maxConnections + 20 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := io.WriteString(c, begin); err != nil {
					t.Fatal(err)
				}
				if name == "idle" {
					if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			// Far less than the two minutes for which idle connections may stay.
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			began := time.Now()
			if code, body, err := get(client, s.URL()); err != nil || code != 200 || body != "page" {
				t.Errorf("%d %q, %v", code, body, err)
			}
			t.Logf("answered after %v", time.Since(began))
		})
	}
}

// TestBusyConnectionsKeepTheirPlaces fills every place with requests under way: none is cut off,
// and the next connection is answered when one ends.
func TestBusyConnectionsKeepTheirPlaces(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const most = 4
	b := newBounded(l, most)
	release, begun := make(chan struct{}), make(chan struct{}, most+1)
	server := &http.Server{ConnState: b.state, ConnContext: b.remember,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer answering(r.Context())()
			begun <- struct{}{}
			<-release
			_, _ = io.WriteString(w, "done")
		})}
	go func() { _ = server.Serve(b) }()
	defer server.Close()
	results := make(chan error, most+1)
	var group sync.WaitGroup
	ask := func() {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			code, body, err := get(client, "http://"+l.Addr().String()+"/")
			if err == nil && (code != 200 || body != "done") {
				err = fmt.Errorf("%d %q", code, body)
			}
			results <- err
		})
	}
	for range most {
		ask()
		<-begun
	}
	ask()
	close(release)
	group.Wait()
	for range most + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestLargestSourceGivesWay checks who loses a place: the source with the most connections, and of
// it the one that has waited for longest.
func TestLargestSourceGivesWay(t *testing.T) {
	b := newBounded(nil, 4)
	add := func(ip string, busy bool) *placed {
		p := &placed{in: b, source: sourceOf(&net.TCPAddr{IP: net.ParseIP(ip)}), busy: busy}
		b.conns = append(b.conns, p)
		return p
	}
	user := add("192.0.2.1", false)
	add("192.0.2.9", true)
	oldest := add("192.0.2.9", false)
	add("192.0.2.9", false)
	if got := b.victim(); got != oldest {
		t.Errorf("%+v gives way", got)
	}
	// One host has a /64.
	b.conns = []*placed{user}
	six := add("2001:db8::1", false)
	add("2001:db8::2", false)
	if got := b.victim(); got != six {
		t.Errorf("%+v gives way", got)
	}
	b.conns = nil
	add("192.0.2.1", true)
	if got := b.victim(); got != nil {
		t.Errorf("a busy connection gives way: %+v", got)
	}
}
