package answer

import (
	"context"
	"testing"
	"time"
)

// TestLateAnswersAreBounded lets answers wait for an hour. Each query started a timer with a copy
// of its answer, as many as arrived.
func TestLateAnswersAreBounded(t *testing.T) {
	s := &Server{late: make(chan struct{}, 2)}
	ctx, cancel := context.WithCancel(t.Context())
	for n := range 2 {
		if !s.later(ctx, time.Hour, func() {}) {
			t.Errorf("answer %d does not wait", n)
		}
	}
	blocked := make(chan bool)
	go func() { blocked <- s.later(ctx, time.Hour, func() {}) }()
	cancel() // with both places taken this is all that ends the wait
	if <-blocked {
		t.Error("a third answer waits beside two")
	}
	sent := make(chan bool, 1)
	s = &Server{late: make(chan struct{}, 1)}
	s.late <- struct{}{}
	go s.later(t.Context(), 0, func() { sent <- true })
	<-s.late // an answer has left, so the next one takes its place
	<-sent
}
