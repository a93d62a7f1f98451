package wire_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/wire"
)

// TestStandstillOfAServer stops this process in the middle of a handshake, for longer than a peer
// may take. The peer has answered in time, and must get its channel.
func TestStandstillOfAServer(t *testing.T) {
	t.Parallel()
	if !testenv.Alone(t) {
		return
	}
	key := wire.NewKey()
	l := listen(t, key)
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	config, err := wire.ClientConfig(key)
	if err != nil {
		t.Fatal(err)
	}
	// The first read comes after the first message has been sent.
	stopped := &stopping{Conn: conn, stop: sync.OnceValue(func() error {
		const script = "kill -STOP $PPID; sleep %v; kill -CONT $PPID"
		return exec.Command("sh", "-c", fmt.Sprintf(script, 1+wire.HelloWithin.Seconds())).Run()
	})}
	secure := tls.Client(stopped, config)
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	c := wire.NewConn(secure)
	defer c.Close()
	if err := c.Send(t.Context(), "hello", nil); err != nil {
		t.Fatal(err)
	}
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if _, err := served.Receive(t.Context()); err != nil {
		t.Error(err)
	}
}

// stopping is a connection whose first Read stops this process for a while.
type stopping struct {
	net.Conn
	stop func() error
}

func (s *stopping) Read(b []byte) (int, error) {
	if err := s.stop(); err != nil {
		return 0, fmt.Errorf("stop this process: %w", err)
	}
	return s.Conn.Read(b)
}
