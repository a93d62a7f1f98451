package peer_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
)

// TestLongNames: what a client says about itself is in every line of the log about it, and in
// memory as long as it is connected.
func TestLongNames(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	long := strings.Repeat("ü", 50_000)
	c := f.connect(f.addr, peer.ConnectOptions{HostName: long})
	if _, err := c.Apply(t.Context(), long, knob.Setting{Knob: rmem, Value: larger}); err != nil {
		t.Fatal(err)
	}
	changes, err := c.History(t.Context())
	if err != nil || len(changes) != 1 || len(changes[0].Reason) > 1000 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	c.Close()
	f.await(" left")
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.lines {
		if len(line) > 2000 {
			t.Errorf("a line of %d bytes: %.100s", len(line), line)
		}
	}
}
