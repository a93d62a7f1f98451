package sockperf

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// Servers of tests wait so long. A hasty one gets its client and the client's first bytes before it
// serves, so that a slow machine does not make the client a silent one.
var (
	impatient = &patience{first: time.Minute, idle: time.Second, answer: 500 * time.Millisecond}
	hasty     = &patience{first: time.Second, idle: time.Second, answer: 500 * time.Millisecond}
)

// TestBadClientsAreClosedAndNamed has TCP clients that violate the protocol; the server continues
// to serve other clients.
func TestBadClientsAreClosedAndNamed(t *testing.T) {
	t.Parallel()
	said := new(traffictest.Log)
	s, _ := startServer(t,
		ServerOptions{Log: said.Add, patience: impatient, Gate: admission.New(admission.Limits{Bytes: 10_000})})
	message := func(length int) []byte {
		p := make([]byte, max(length, HeaderBytes))
		header{1, fromClient | wantsPong, uint32(length)}.put(p)
		return p
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		drip  time.Duration // between single bytes
		words []string
		hasty bool
	}{
		{"half open", nil, 0, []string{"nothing came within"}, true},
		{"cut off", message(20)[:15], 0, []string{"an unfinished message did not end within"}, true},
		{"slow loris", message(60_000), 20 * time.Millisecond,
			[]string{"an unfinished message did not end within", "0 messages"}, true},
		{"idle", message(14), 0, []string{"1 messages, 1 answered", "no further message within"}, false},
		{"garbage", bytes.Repeat([]byte{0xa5}, 100), 0,
			[]string{"no sockperf: a message of 2779096485 bytes after 0"}, false},
		{"oversized", message(65_508)[:14], 0, []string{"a message of 65508 bytes after 0"}, false},
		{"too short for its header", message(13), 0, []string{"a message of 13 bytes after 0"}, false},
		{"bad after good", append(message(20), message(3)...), 0,
			[]string{"1 messages", "a message of 3 bytes after 20"}, false},
		{"http", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 0, []string{"the client speaks HTTP"}, false},
		{"tls", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaa"), 0, []string{"the client speaks TLS"}, false},
		{"too much", bytes.Repeat(message(1000), 11), 0, []string{"that this host allows per test are used up"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, begin := s, func() {}
			if c.hasty {
				var err error
				if s, err = Listen(t.Context(), ServerOptions{Log: said.Add, patience: hasty, Address: "127.0.0.1:0",
					Gate: admission.New(admission.Limits{})}); err != nil {
					t.Fatal(err)
				}
				begin = func() { traffictest.Serve(t, s) }
			}
			conn, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			first := len(c.bytes)
			if c.drip > 0 {
				first = 1
			}
			if _, err := conn.Write(c.bytes[:first]); err != nil {
				t.Fatal(err)
			}
			begin()
			dripping := make(chan struct{})
			go func() {
				defer close(dripping)
				for _, b := range c.bytes[first:] {
					if _, err := conn.Write([]byte{b}); err != nil {
						return // the server closed the connection, as it should
					}
					time.Sleep(c.drip)
				}
			}()
			buf := make([]byte, 1<<16)
			for {
				if _, err := conn.Read(buf); err != nil {
					if ne, ok := err.(net.Error); ok && ne.Timeout() {
						t.Error("not closed")
					}
					break
				}
			}
			_ = conn.Close()
			<-dripping
			said.Await(t, 1, append(c.words, conn.LocalAddr().String())...)
		})
	}
	// A client that never reads its answers is cut off too; that takes more bytes than the sockets
	// hold.
	t.Run("deaf", func(t *testing.T) {
		t.Parallel()
		said := new(traffictest.Log)
		s, _ := startServer(t, ServerOptions{Log: said.Add, patience: impatient})
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		big := message(65_000)
		for range 2000 {
			if _, err := conn.Write(big); err != nil {
				break
			}
		}
		said.Await(t, 1, "it does not read its answers within")
	})
	t.Run("serves on", func(t *testing.T) {
		t.Parallel()
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		roundTrip(t, conn, message(14))
	})
}

func roundTrip(t *testing.T, conn net.Conn, message []byte) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(message); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(message)+1)
	n, err := conn.Read(answer)
	if err != nil || n != len(message) || answer[9] != byte(wantsPong) {
		t.Fatalf("answer %x, %v", answer[:n], err)
	}
}

func TestTooManyClientsAreTurnedAway(t *testing.T) {
	said := new(traffictest.Log)
	s, stop := startServer(t, ServerOptions{Log: said.Add, Gate: admission.New(admission.Limits{Clients: 1})})
	first, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	roundTrip(t, first, newMessage(30))
	second, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Write(newMessage(30)); err != nil {
		t.Fatal(err)
	}
	said.Await(t, 1, "turned away", "1 test is being served", second.LocalAddr().String())
	roundTrip(t, first, newMessage(30))
	stop()
	said.Await(t, 1, first.LocalAddr().String(), "2 messages, 2 answered, 60 bytes in and 60 out", "the server ends")
}

// FuzzStream feeds a connection in pieces and compares the answers with those to single messages.
func FuzzStream(f *testing.F) {
	f.Add(newMessage(20), uint8(3))
	f.Add(append(newMessage(14), newMessage(100)...), uint8(200))
	unasked := newMessage(30)
	binary.BigEndian.PutUint16(unasked[8:], uint16(fromClient))
	f.Add(append(append(unasked, newMessage(17)...), unasked...), uint8(16))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		var want []byte
		bad := false
		for rest := in; len(rest) >= HeaderBytes; {
			h, ok := parseHeader(rest)
			if !ok {
				bad = true
				break
			}
			if len(rest) < int(h.length) {
				break
			}
			if h.asks() {
				want = append(want, rest[:h.length]...)
				turn(want[len(want)-int(h.length):])
			}
			rest = rest[h.length:]
		}
		s := &stream{buf: make([]byte, 2*MaxMessageBytes)}
		var got []byte
		for rest := in; len(rest) > 0; {
			n := copy(s.buf[s.have:], rest[:min(len(rest), int(piece)+1)])
			if n == 0 {
				t.Fatal("no room for the rest of a message")
			}
			rest = rest[n:]
			s.have += n
			s.in += int64(n)
			replies, err := s.turnAll(1)
			if err != nil {
				if !bad || !strings.HasPrefix(err.Error(), "no sockperf") {
					t.Fatalf("%x: %v", in, err)
				}
				// Messages that came in one piece with the bad one are not answered.
				if !bytes.HasPrefix(want, got) {
					t.Fatalf("%x answered with %x, want %x", in, got, want)
				}
				return
			}
			got = append(got, s.buf[:replies]...)
			s.shift(replies)
		}
		if bad || !bytes.Equal(want, got) {
			t.Fatalf("%x answered with %x, want %x", in, got, want)
		}
	})
}

// TestSilentConnectionsTakeNoPlace opens many silent connections: a client is still served, and the
// log stays short.
func TestSilentConnectionsTakeNoPlace(t *testing.T) {
	said := new(traffictest.Log)
	s, _ := startServer(t, ServerOptions{Log: said.Add, Gate: admission.New(admission.Limits{Clients: 1})})
	for range 2 * maxSilentPerSource {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	said.Await(t, 1, "turned away", "too many silent connections")
	if closed := len(said.Find("too many connections")); closed > admission.StrangerLines {
		t.Errorf("%d lines of strangers", closed)
	}
	// Another loopback address: all places of this one are taken.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := d.Dial("tcp", s.Addr().String())
	if err != nil {
		testenv.Missing(t, testenv.Network, "a second address of loopback: ", err)
	}
	defer conn.Close()
	roundTrip(t, conn, newMessage(30))
}
