package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleConnectionsLockNobodyOut takes every place, with connections that are idle, that say
// nothing, or that send half a request, and then opens the page: it does not wait for the end of
// any of them.
func TestIdleConnectionsLockNobodyOut(t *testing.T) {
	const proceed = "HTTP/1.1 100 Continue\r\n\r\n"
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }
	// The time of a request is long: however slow the machine, none of them ends meanwhile.
	s := serve(t, Options{PasswordFile: cheap(t, secret), Open: []string{"/"}, readTimeout: time.Hour},
		http.HandlerFunc(page))
	address := s.Addr().String()
	for name, begin := range map[string]string{
		"idle":           "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"silent":         "",
		"half a request": "G",
		"half a body":    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf",
		"half a login": "POST /login HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" +
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\npassword=",
	} {
		t.Run(name, func(t *testing.T) {
			var conns []net.Conn
			for i := range maxConnections + 20 {
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
				if strings.Contains(begin, "Expect:") {
					if i >= maxConnections {
						continue
					}
					// The server says so when it begins to wait for the body.
					head := make([]byte, len(proceed))
					if _, err := io.ReadFull(c, head); err != nil || string(head) != proceed {
						continue
					}
				}
				conns = append(conns, c)
			}
			// Less than the two minutes for which idle connections may stay.
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			began := time.Now()
			if code, body, err := get(client, s.URL()); err != nil || code != 200 || body != "page" {
				t.Errorf("%d %q, %v", code, body, err)
			}
			t.Logf("answered after %v", time.Since(began))
			for _, c := range conns {
				_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
				if n, _ := c.Read(make([]byte, 1)); name != "idle" && n > 0 {
					t.Error("the page waited for the end of other requests")
					break
				}
			}
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

// TestConnectionOfSeveralRequests is busy until the last of them is answered.
func TestConnectionOfSeveralRequests(t *testing.T) {
	b := newBounded(nil, 4)
	p := &placed{in: b}
	b.conns = []*placed{p}
	ctx := context.WithValue(t.Context(), placeKey{}, p)
	first, second := answering(ctx), answering(ctx)
	first()
	if b.victim() != nil {
		t.Error("a busy connection gives way")
	}
	second()
	if b.victim() != p {
		t.Error("an idle connection does not give way")
	}
}

// deadlines is a writer that remembers the deadline of each write.
type deadlines struct {
	httptest.ResponseRecorder
	all []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.all = append(d.all, at)
	return nil
}

// TestReadersThatStall checks that a client which takes nothing of an answer soon loses its place,
// and that small bites do not make it last.
func TestReadersThatStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadlines{}
		w := &answer{ResponseWriter: d, control: http.NewResponseController(d), latest: time.Now().Add(writeTimeout)}
		began := time.Now()
		for range 8 {
			_, _ = w.Write([]byte("x"))
			time.Sleep(stallTimeout - time.Second)
		}
		if got := d.all[0].Sub(began); got != stallTimeout {
			t.Errorf("the first write may last %v", got)
		}
		if got := d.all[7].Sub(began); got != writeTimeout {
			t.Errorf("all writes may last %v", got)
		}
	})
}

// TestLargestSourceGivesWay checks who loses a place: the source with the most connections, and of
// it the one that has waited for longest.
func TestLargestSourceGivesWay(t *testing.T) {
	b := newBounded(nil, 4)
	add := func(ip string, busy bool) *placed {
		p := &placed{in: b, source: sourceOf(&net.TCPAddr{IP: net.ParseIP(ip)})}
		if busy {
			p.busy = 1
		}
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
	// One site has a /48.
	b.conns = []*placed{user}
	six := add("2001:db8::1", false)
	add("2001:db8:0:2::2", false)
	if got := b.victim(); got != six {
		t.Errorf("%+v gives way", got)
	}
	b.conns = nil
	add("192.0.2.1", true)
	if got := b.victim(); got != nil {
		t.Errorf("a busy connection gives way: %+v", got)
	}
}
