package guest

import (
	"os"
	"testing"
	"time"
)

// TestWatch: a process that works and says nothing is killed by its processor time, and one that
// rests is not.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		script string
		silent bool
	}{{"while :; do :; done", true}, {"exec sleep 60", false}} {
		process, err := os.StartProcess("/bin/sh", []string{"sh", "-c", c.script}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		g := &Guest{process: process, ended: make(chan struct{})}
		go func() {
			defer close(g.ended)
			_, _ = process.Wait() // it was killed
		}()
		stop := g.watch(100 * time.Millisecond)
		if c.silent {
			<-g.ended
		} else {
			time.Sleep(1100 * time.Millisecond)
		}
		if got := stop(); got != c.silent {
			t.Errorf("%s: killed %v", c.script, got)
		}
		_ = process.Kill() // fails if it was killed
		<-g.ended
	}
}
