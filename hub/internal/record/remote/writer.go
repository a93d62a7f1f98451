package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host/sample"
)

// Options of a writer. The zero value of each field but URL has the meaning given beside it.
type Options struct {
	URL  string // http or https, without a password in it
	Host string // label host of all samples

	CAFile            string // PEM: authorities of the receiver's certificate; empty: those of the system
	CertFile, KeyFile string // PEM: client certificate and key, if the receiver requires one
	Username          string // with PasswordFile: basic authentication
	PasswordFile      string // read for each request, so that it can change
	BearerTokenFile   string // instead of a user; read for each request

	Gather time.Duration // time of the readings in one request; 0: 5 s
	// size of the queue of packed requests, which drops the oldest beyond it; 0: 32 MiB, half an
	// hour of 2 000 series
	QueueBytes int64
	Timeout    time.Duration // of one request; 0: 30 s
	Backoff    time.Duration // after the first failure, doubled with each one; 0: 0.5 s
	MaxBackoff time.Duration // 0: 30 s; a receiver's Retry-After may ask for up to ten times as much
	Logger     *slog.Logger  // nil: silent
}

// Status is the state of a writer.
type Status struct {
	SentSamples     uint64
	DroppedSamples  uint64    // the receiver was away for too long
	RefusedSamples  uint64    // by the receiver, for good
	Failures        uint64    // failed requests, which the writer retries
	QueuedSamples   int       // in the queue
	QueuedBytes     int64     // packed
	Since           time.Time // start of the failure; zero: no failure
	LastError       string    // of the request that the writer retries, or that the receiver refused last
	NewestDelivered time.Time // time of the newest reading that the receiver has
}

// Writer sends readings. All methods may be called concurrently.
type Writer struct {
	o      Options
	client *http.Client
	own    []*sample.Series // series of Metrics, in their order

	mu     sync.Mutex
	packer packer
	queue  []request
	status Status
	closed bool
	first  time.Time // of the gathered readings
	newest time.Time

	wake   chan struct{} // the queue is not empty
	cancel context.CancelFunc
	done   chan struct{}
}

// request is a packed request.
type request struct {
	body    []byte
	samples int
	newest  time.Time
}

// New checks the options and begins to send what is appended.
func New(o Options) (*Writer, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("remote write: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("remote write %s: want http://HOST/PATH or https://HOST/PATH", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("remote write %s: write username, and the password in a file", u.Redacted())
	case o.BearerTokenFile != "" && (o.Username != "" || o.PasswordFile != ""):
		return nil, errors.New("remote write: write a user or a token, not both")
	case (o.Username == "") != (o.PasswordFile == ""):
		return nil, errors.New("remote write: a user needs a file with the password")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return nil, errors.New("remote write: a certificate needs its key")
	}
	o.Gather = cmp.Or(o.Gather, 5*time.Second)
	o.QueueBytes = cmp.Or(o.QueueBytes, 32<<20)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Backoff = cmp.Or(o.Backoff, 500*time.Millisecond)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	client, err := newClient(o)
	if err != nil {
		return nil, fmt.Errorf("remote write: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{o: o, client: client, packer: newPacker(o.Host), wake: make(chan struct{}, 1), cancel: cancel,
		done: make(chan struct{})}
	for _, m := range Metrics() {
		w.own = append(w.own, &sample.Series{Metric: m})
	}
	go w.run(ctx)
	return w, nil
}

// Append adds a reading. It never waits for the receiver.
func (w *Writer) Append(r *sample.Reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.packer.samples == 0 {
		w.first = r.Time
	}
	w.packer.add(r)
	if r.Time.After(w.newest) {
		w.newest = r.Time
	}
	// A reading from before the first one, after a clock was set back, ends the gathering too.
	if d := r.Time.Sub(w.first); d < 0 || d+time.Second >= w.o.Gather || w.packer.samples >= maxSamples {
		w.pack()
	}
}

// pack moves the gathered readings to the queue. The caller holds mu.
func (w *Writer) pack() {
	if w.packer.samples == 0 {
		return
	}
	n := w.packer.samples
	body, err := w.packer.pack()
	if err != nil {
		w.status.RefusedSamples += uint64(n)
		w.status.LastError = err.Error()
		return
	}
	w.queue = append(w.queue, request{body, n, w.newest})
	w.status.QueuedSamples += n
	w.status.QueuedBytes += int64(len(body))
	for w.status.QueuedBytes > w.o.QueueBytes && len(w.queue) > 1 {
		w.status.DroppedSamples += uint64(w.queue[0].samples)
		w.shift()
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// shift removes the oldest request. The caller holds mu.
func (w *Writer) shift() {
	w.status.QueuedSamples -= w.queue[0].samples
	w.status.QueuedBytes -= int64(len(w.queue[0].body))
	w.queue[0] = request{}
	w.queue = w.queue[1:]
}

// Status returns the state of the writer.
func (w *Writer) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status
	s.QueuedSamples += w.packer.samples
	return s
}

// Close sends the queue for as long as the context allows, and ends. An error reports samples that
// were not sent.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.pack()
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	w.cancel()
	<-w.done
	w.client.CloseIdleConnections()
	if left := w.Status().QueuedSamples; left > 0 {
		return fmt.Errorf("remote write: %d samples were not sent", left)
	}
	return nil
}

// run sends the queue until the writer is closed and the queue is empty, or the context ends.
func (w *Writer) run(ctx context.Context) {
	defer close(w.done)
	wait := w.o.Backoff
	for {
		w.mu.Lock()
		closed := w.closed
		var next request
		if len(w.queue) > 0 {
			next = w.queue[0]
		}
		w.mu.Unlock()
		if next.body == nil {
			if closed {
				return
			}
			select {
			case <-w.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		err := w.send(ctx, next.body)
		if ctx.Err() != nil {
			return
		}
		again := w.sent(next, err)
		if !again {
			wait = w.o.Backoff
			continue
		}
		if !pause(ctx, w.delay(wait, err)) {
			return
		}
		wait = min(2*wait, w.o.MaxBackoff)
	}
}

// sent records the result of an attempt, and reports whether to retry.
func (w *Writer) sent(r request, err error) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var refused *refusedError
	switch {
	case err == nil:
		w.status.SentSamples += uint64(r.samples)
		w.status.Since, w.status.LastError = time.Time{}, ""
		w.status.NewestDelivered = r.newest
	case errors.As(err, &refused):
		w.o.Logger.Warn("remote write: the receiver refuses samples", "samples", r.samples, "error", err)
		w.status.RefusedSamples += uint64(r.samples)
		w.status.Since, w.status.LastError = time.Time{}, err.Error()
	default:
		if w.status.Since.IsZero() {
			w.status.Since = time.Now()
			w.o.Logger.Warn("remote write failed: retrying", "error", err)
		}
		w.status.Failures++
		w.status.LastError = err.Error()
		return true
	}
	// The queue may have dropped it in the meantime.
	if len(w.queue) > 0 && &w.queue[0].body[0] == &r.body[0] {
		w.shift()
	} else {
		w.status.DroppedSamples -= uint64(r.samples)
	}
	return false
}

// pause waits, and reports whether the context is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
