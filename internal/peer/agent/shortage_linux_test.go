package agent

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestServesAfterAShortage uses up the descriptors of an agent while it serves. One that ends would
// leave systemd to restart it, and all its clients without an answer.
func TestServesAfterAShortage(t *testing.T) {
	if !testenv.Alone(t) {
		return
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	logged := make(chan string, 100)
	s := newServer(Config{Log: func(line string) { logged <- line }}, l,
		func(net.Conn) (peer, error) { return peer{uid: 77}, nil }, 1, -1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	conn, feed := testenv.Starve(t, func() (net.Conn, error) { return net.Dial("unix", socket) })
	defer conn.Close()
	select {
	case line := <-logged:
		if !strings.Contains(line, "too many open files; retrying") {
			t.Errorf("logged %q", line)
		}
	case err := <-ended:
		t.Fatalf("ended: %v", err)
	}
	feed()
	if line := <-logged; !strings.Contains(line, "turned away: user 77") { // it was accepted
		t.Errorf("logged %q", line)
	}
	began := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended: %v", err)
	}
	t.Logf("ended within %v", time.Since(began))
}
