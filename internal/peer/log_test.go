package peer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
)

// TestStoppedLog: a log that takes nothing (a terminal that was stopped) keeps no trial in force
// when its client leaves, and no client from its answers.
func TestStoppedLog(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	f := serve(t, func(o *peer.ServerOptions) {
		log := o.Log
		o.Log = func(line string) {
			if strings.Contains(line, "on trial") {
				<-stopped
			}
			log(line)
		}
	})
	c := f.connect(f.addr, peer.ConnectOptions{})
	original := f.value(rmem)
	applied := make(chan error, 1)
	go func() {
		_, err := c.Apply(t.Context(), "test", knob.Setting{Knob: rmem, Value: larger})
		applied <- err
	}()
	select {
	case err := <-applied:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the change waits for the log")
	}
	c.Close()
	for end := time.Now().Add(time.Minute); f.value(rmem) != original; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("the trial waits for the log")
			break
		}
	}
	close(stopped)
	f.await("took back trial")
}
