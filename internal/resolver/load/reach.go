package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// retryAfter is how long a link waits between two attempts to open a channel.
const retryAfter = 100 * time.Millisecond

// reach is what all links know about whether the server accepts connections.
type reach struct {
	ctx    context.Context // ends with the engine
	close  context.CancelFunc
	once   atomic.Bool   // it has accepted one
	down   atomic.Bool   // it did not accept the last one
	unsent atomic.Uint64 // queries that were due while there was no connection

	mu      sync.Mutex // guards what follows
	last    error      // of the latest attempt that failed
	ended   int        // connections on which queries waited
	unheard int        // those queries
	status  error      // of the latest request that the server refused
	refused uint64     // requests
}

// refuse counts a request that a server of HTTPS refused.
func (r *reach) refuse(status error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
	r.refused++
}

// cut counts a connection that has ended with queries waiting on it.
func (r *reach) cut(queries int) {
	if queries == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	r.unheard += queries
}

func newReach() *reach {
	r := &reach{}
	r.ctx, r.close = context.WithCancel(context.Background())
	return r
}

func (r *reach) succeeded() {
	r.once.Store(true)
	r.down.Store(false)
}

// failed notes an attempt that failed, and reports whether that ends the load: the server never
// accepted a connection, or this host can open no further one.
func (r *reach) failed(err error) (fatal bool) {
	r.down.Store(true)
	r.mu.Lock()
	r.last = err
	r.mu.Unlock()
	return !r.once.Load() || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func (r *reach) warnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	if n := r.unsent.Load(); n > 0 {
		all = append(all, fmt.Sprintf("%d queries were due while the server accepted no connection, and count as lost: %v",
			n, r.last))
	}
	if r.ended > 0 {
		all = append(all, fmt.Sprintf("%d connections ended while %d queries waited on them, which count as lost: a client "+
			"would ask again, or send fewer on each (--queries-per-connection)", r.ended, r.unheard))
	}
	if r.refused > 0 {
		all = append(all, fmt.Sprintf("the server refused %d requests, which count as lost; the last with %v", r.refused,
			r.status))
	}
	return all
}
