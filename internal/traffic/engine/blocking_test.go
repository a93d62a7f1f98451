package engine

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// blockingPair returns a connection of this package and its other end, of package net.
func blockingPair(t *testing.T) (*Blocking, *net.TCPConn) {
	t.Helper()
	near, far := socketPair(t)
	b, err := AdoptBlocking(near, ConnOptions{NoDelay: true})
	if err != nil {
		t.Fatal(err)
	}
	// The garbage collector closes a connection that nothing refers to, which would end the other one.
	t.Cleanup(func() { _, _ = b.Close(), far.Close() })
	return b, far
}

// TestBlockingIsAConnection moves data both ways, to the end of both halves.
func TestBlockingIsAConnection(t *testing.T) {
	b, far := blockingPair(t)
	sent := bytes.Repeat([]byte("0123456789"), 300_000)
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(far)
		got <- all
	}()
	if n, err := b.Write(sent); n != len(sent) || err != nil {
		t.Fatalf("wrote %d of %d: %v", n, len(sent), err)
	}
	if err := b.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all, sent) {
		t.Errorf("%d bytes arrived of %d", len(all), len(sent))
	}
	go func() {
		_, _ = far.Write(sent)
		_ = far.CloseWrite()
	}()
	if all, err := io.ReadAll(b); err != nil || !bytes.Equal(all, sent) {
		t.Errorf("read %d bytes of %d: %v", len(all), len(sent), err)
	}
}

// TestBlockingCloseDelivers closes right after a write: what is queued still arrives, with its end.
func TestBlockingCloseDelivers(t *testing.T) {
	b, far := blockingPair(t)
	sent := bytes.Repeat([]byte{7}, 100_000)
	if _, err := b.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(far); err != nil || len(all) != len(sent) {
		t.Errorf("%d bytes of %d arrived: %v", len(all), len(sent), err)
	}
	if err := b.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
}

// TestBlockingEnds has the ways in which a sleeping call ends without data.
func TestBlockingEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*Blocking)
		want error
	}{
		"close":    {func(b *Blocking) { _ = b.Close() }, net.ErrClosed},
		"wake":     {func(b *Blocking) { b.Wake() }, io.EOF},
		"deadline": {func(b *Blocking) { b.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := blockingPair(t)
			ended := make(chan error, 1)
			go func() {
				defer Stay()()
				_, err := b.Read(make([]byte, 10))
				ended <- err
			}()
			c.end(b) // before, during or after the call
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	t.Run("write deadline", func(t *testing.T) {
		t.Parallel()
		b, _ := blockingPair(t)
		b.SetWriteDeadline(time.Unix(1, 0))
		n, err := b.Write(make([]byte, 64<<20)) // more than any socket holds
		if !errors.Is(err, os.ErrDeadlineExceeded) || n == 64<<20 {
			t.Errorf("wrote %d: %v", n, err)
		}
	})
}
