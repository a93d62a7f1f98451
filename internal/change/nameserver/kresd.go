package nameserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// prompt is what kresd writes after each answer on its control socket.
const prompt = "\n> "

// AskKresd sends one line of Lua to each process of Knot Resolver in a working directory, and
// returns what they answer. Their control sockets are the files in control (documentation of Knot
// Resolver 5.6, "Control sockets").
func AskKresd(ctx context.Context, dir, lua string) (string, error) {
	sockets, err := filepath.Glob(filepath.Join(dir, "control", "*"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	asked := 0
	for _, s := range sockets {
		text, err := askOne(ctx, s, lua)
		if errors.Is(err, os.ErrNotExist) || isRefused(err) {
			continue // of a process that has ended
		}
		if err != nil {
			return "", fmt.Errorf("ask %s: %w", s, err)
		}
		asked++
		all.WriteString(text)
	}
	if asked == 0 {
		return "", fmt.Errorf("ask kresd: %w: no control socket in %s answers", os.ErrNotExist, dir)
	}
	return all.String(), nil
}

func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func askOne(ctx context.Context, socket, lua string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close() // what was read decides
	if err := conn.SetDeadline(time.Now().Add(waitForServer)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, lua+"\n"); err != nil {
		return "", err
	}
	var b strings.Builder
	part := make([]byte, 64<<10)
	for b.Len() < mostBytes {
		n, err := conn.Read(part)
		b.Write(part[:n])
		if text, ok := strings.CutSuffix(b.String(), prompt); ok {
			return strings.TrimPrefix(text, "> "), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: an answer of more than %d bytes", io.ErrShortBuffer, mostBytes)
}
