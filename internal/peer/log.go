package peer

import (
	"fmt"
	"sync"
	"time"
)

const (
	// maxUnlogged is how many sentences may wait for a log that does not take them.
	maxUnlogged = 1000
	// lastWords is how long the end of a server waits for its log.
	lastWords = time.Second
)

// unblocked is a log that never makes its caller wait. Where standard error is a terminal that was
// stopped (Ctrl-S), or a pipe that nothing reads, a write to it sleeps on: no trial may wait for
// that. A goroutine exists only while sentences wait.
type unblocked struct {
	log func(string)

	mu      sync.Mutex
	waiting []string
	lost    int           // sentences, since the last one that was taken
	idle    chan struct{} // closed when all are written; nil: none waits
}

// add passes a sentence on, in order.
func (u *unblocked) add(sentence string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.waiting) >= maxUnlogged {
		u.lost++
		return
	}
	if u.lost > 0 {
		u.waiting = append(u.waiting, fmt.Sprintf("%d more sentences were lost: the log took none", u.lost))
		u.lost = 0
	}
	u.waiting = append(u.waiting, sentence)
	if u.idle == nil {
		u.idle = make(chan struct{})
		go u.write(u.idle)
	}
}

// write writes what waits, until nothing does.
func (u *unblocked) write(idle chan struct{}) {
	for {
		u.mu.Lock()
		if len(u.waiting) == 0 {
			u.waiting, u.idle = nil, nil
			close(idle)
			u.mu.Unlock()
			return
		}
		next := u.waiting[0]
		u.waiting = u.waiting[1:]
		u.mu.Unlock()
		u.log(next)
	}
}

// flush waits until all is written, for the time of lastWords at most.
func (u *unblocked) flush() {
	u.mu.Lock()
	idle := u.idle
	u.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(lastWords):
	}
}
