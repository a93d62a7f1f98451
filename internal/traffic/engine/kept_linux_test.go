package engine

import (
	"runtime"
	"testing"
)

// TestTheWorldStopsForSleepers collects garbage while workers sleep on silent connections and keep
// their logical processors. If the runtime could not wake a sleeper for that, each collection would
// take until its call times out, or forever with more sleepers than processors.
func TestTheWorldStopsForSleepers(t *testing.T) {
	const sleepers = 4
	defer LendProcessors(sleepers)()
	if !scheduler.keep.Load() {
		t.Fatal("few workers do not keep their processors")
	}
	p := &Phase{}
	var workers []*Worker
	ended := make(chan error, sleepers)
	for range sleepers {
		near, far := connPair(t, ConnOptions{})
		_ = far
		w, err := NewStreamReceiver(p, near, StreamOptions{})
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, w)
		go func() { ended <- w.Run(-1) }()
	}
	for range 20 {
		runtime.GC()
	}
	p.Set(Stopped)
	for _, w := range workers {
		w.Wake()
	}
	for range sleepers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestManyWorkersGiveTheirProcessorsBack checks that hundreds of sleepers keep none: the runtime
// would wake each of them a hundred times a second.
func TestManyWorkersGiveTheirProcessorsBack(t *testing.T) {
	few := LendProcessors(2)
	many := LendProcessors(keepAtMost)
	if scheduler.keep.Load() {
		t.Error("many workers keep their processors")
	}
	many()
	if !scheduler.keep.Load() {
		t.Error("few workers do not")
	}
	few()
	if scheduler.keep.Load() {
		t.Error("without workers, processors are kept")
	}
}
