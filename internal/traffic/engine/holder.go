package engine

import "sync"

// holder is the body of a worker that keeps a connection open and moves nothing.
type holder struct {
	conn *Conn
	wake chan struct{}
	once sync.Once
}

// NewHolder makes that worker around a connection; a test wants only its struct tcp_info.
func NewHolder(role Role, p *Phase, conn *Conn) *Worker {
	w := New(role, p, &holder{conn: conn, wake: make(chan struct{})})
	w.Conn = conn
	return w
}

// Loop waits for the end of the test.
func (h *holder) Loop(*Worker) error {
	<-h.wake
	return nil
}

// Wake ends the wait.
func (h *holder) Wake() { h.once.Do(func() { close(h.wake) }) }

// Close gives the connection up.
func (h *holder) Close() { h.conn.Close() }
