package admission

import (
	"context"
	"sync"
)

// Turns lets the users of one key go one after the other, in the order in which they asked, and
// keeps nothing of a key without users. It serves the moments of a protocol in which only the key
// shows which test an arrival belongs to: where iperf3 says hello over UDP, or nuttcp connects for
// data, only the address distinguishes one test from the next. The zero value is ready. Any
// goroutine may call its methods.
type Turns[K comparable] struct {
	mu   sync.Mutex
	keys map[K]*turn
}

// turn is a key's lock. A channel and no mutex: waiting for it can end with a context, and Go
// serves senders in the order of their arrival.
type turn struct {
	taken chan struct{} // holds one element while a user has the turn
	users int           // users that have it or wait for it; protected by the lock of Turns
}

// Take waits for the turn of a key. pass gives it to the next user and may be called more than
// once; when err, which is the cause of ctx's end, is not nil there is nothing to pass.
func (t *Turns[K]) Take(ctx context.Context, key K) (pass func(), err error) {
	t.mu.Lock()
	if t.keys == nil {
		t.keys = make(map[K]*turn)
	}
	own := t.keys[key]
	if own == nil {
		own = &turn{taken: make(chan struct{}, 1)}
		t.keys[key] = own
	}
	own.users++
	t.mu.Unlock()
	select {
	case own.taken <- struct{}{}:
		return sync.OnceFunc(func() {
			<-own.taken
			t.leave(key, own)
		}), nil
	case <-ctx.Done():
		t.leave(key, own)
		return nil, context.Cause(ctx)
	}
}

// leave forgets a key with the last of its users.
func (t *Turns[K]) leave(key K, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.keys, key)
	}
}
