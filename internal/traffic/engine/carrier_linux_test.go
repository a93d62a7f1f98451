package engine

import (
	"testing"
	"time"
)

// TestPatience lingers on short paths, and on long ones for less than a thousandth of the turns in
// the end.
func TestPatience(t *testing.T) {
	var p patience
	for range 1000 {
		if !p.left() {
			t.Fatal("a short path lost patience")
		}
		p.learn(shortTurn)
	}
	var lingered int
	const turns = 1 << 20
	for range turns {
		if p.left() {
			lingered++
			p.learn(lingerTime)
		}
	}
	if lingered == 0 || lingered > turns/mostHaste+15 {
		t.Errorf("lingered in %d of %d turns of a long path", lingered, turns)
	}
	// The path has become short: patience comes back.
	for range 20 * mostHaste {
		if p.left() {
			p.learn(time.Microsecond)
		}
	}
	if p.haste != 0 || p.next != firstHaste {
		t.Errorf("a path that has become short: %+v", p)
	}
}
