package traffictest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Server is one of our servers, of any dialect, when it listens.
type Server interface {
	Serve(ctx context.Context) error
}

// Serve runs a server until the test ends or stop is called, and returns at once. Then the server
// must end without an error; it waits for its last clients.
func Serve(t testing.TB, s Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(2 * patience):
			t.Error("the server does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

// Eventually waits for something that another goroutine does and that no [Log] shows.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}
