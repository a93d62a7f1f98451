package desk

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestNoDescriptors asks a desk whose process has no file descriptors left: it answers when there
// is one, and the hub does not end.
func TestNoDescriptors(t *testing.T) {
	if !testenv.Alone(t) {
		return
	}
	dir := t.TempDir()
	l, err := listenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Desk{socket: l, log: slog.New(slog.DiscardHandler)}).serveControl(ctx) }()
	c, feed := testenv.Starve(t, func() (net.Conn, error) { return net.Dial("unix", Socket(dir)) })
	defer c.Close()
	if _, err := io.WriteString(c, "x\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatal(err)
	default:
	}
	feed()
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(answer, "not a request") {
		t.Errorf("%q, %v", answer, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
