package talkers

import (
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestOwnConnection moves bytes over loopback and finds them, at both ends, with this process.
func TestOwnConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	m := &Meter{list: listing(0), find: find, now: time.Now} // a busy machine has the time
	if _, err := m.Take(); err != nil {
		t.Fatal(err)
	}
	started := m.at
	const size = 1 << 20
	go func() { _, _ = near.Write(make([]byte, size)) }()
	if _, err := io.ReadFull(far, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	r, err := m.Take()
	if err != nil {
		t.Fatal(err)
	}
	seconds := m.at.Sub(started).Seconds()
	var sent, received float64
	for _, c := range r.Connections {
		if c.PID != os.Getpid() || c.Name == "" {
			continue // of another program
		}
		switch near.LocalAddr().String() {
		case c.Local:
			sent = c.Send * seconds / 8
		case c.Remote:
			received = c.Receive * seconds / 8
		}
	}
	// The last acknowledgement may be on its way when the reader has everything.
	if sent < size/2 || sent > size+1 || received < size-1 || received > size+1 {
		t.Errorf("%.0f bytes sent and %.0f received, of %d: %+v", sent, received, size, r)
	}
}
