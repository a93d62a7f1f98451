package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTurnsAreOneAtATime has many goroutines ask for few keys: no two have the turn of one key at
// once, and Turns keeps nothing of any of them.
func TestTurnsAreOneAtATime(t *testing.T) {
	var turns Turns[int]
	var going [3]atomic.Int32
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			key := i % len(going)
			pass, err := turns.Take(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			if n := going[key].Add(1); n != 1 {
				t.Errorf("%d go at once", n)
			}
			going[key].Add(-1)
			pass()
			pass()
		})
	}
	all.Wait()
	if len(turns.keys) != 0 {
		t.Errorf("%d keys are left", len(turns.keys))
	}
}

func TestTurnsEndWithTheirContext(t *testing.T) {
	var turns Turns[string]
	pass, err := turns.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.Take(t.Context(), "b") // another key does not wait
	if err != nil {
		t.Fatal(err)
	}
	other()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := turns.Take(ctx, "a"); !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause", err)
	}
	pass()
	if again, err := turns.Take(t.Context(), "a"); err != nil {
		t.Error(err)
	} else {
		again()
	}
	if len(turns.keys) != 0 {
		t.Errorf("%d keys are left", len(turns.keys))
	}
}
