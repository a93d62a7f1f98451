package alert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"time"
)

const (
	webhooksAtOnce = 8
	programsAtOnce = 4
	firstBackoff   = 5 * time.Second // after a message that was not taken; doubled each time
	longestBackoff = 5 * time.Minute
)

// errPermanent says that a receiver does not want a message, and would not want it a moment later.
var errPermanent = errors.New("will not be taken")

// receiver is who is told about one rule, and what it has been told.
type receiver struct {
	kind, to string // "webhook" and its address, "exec" and the command
	timeout  time.Duration
	send     func(ctx context.Context, body []byte) error

	// alerts that it believes to fire, by their fingerprints; Resolved: it is still to be told
	told      map[string]Active
	sentAt    time.Time // of the last message that it took
	notBefore time.Time // after one that it did not
	failures  int
	problem   string
	busy      bool // a message is under way
}

func newReceiver(kind, to string, timeout time.Duration, send func(ctx context.Context, body []byte) error) *receiver {
	return &receiver{kind: kind, to: to, timeout: timeout, send: send, told: make(map[string]Active)}
}

// key names the receiver on disk. Addresses may be secrets in themselves.
func (to *receiver) key() string {
	sum := sha256.Sum256([]byte(to.kind + " " + to.to))
	return hex.EncodeToString(sum[:8])
}

// name is what logs say: the host of an address, since the path of many is a secret.
func (to *receiver) name() string {
	if u, err := url.Parse(to.to); to.kind == "webhook" && err == nil {
		return to.kind + " " + u.Scheme + "://" + u.Host
	}
	return to.kind + " " + to.to
}

// dispatch hands every receiver what it does not know yet, without waiting for any.
func (w *Watcher) dispatch(ctx context.Context, now time.Time) {
	for _, r := range w.rules {
		for _, to := range r.receivers {
			if !to.busy && !now.Before(to.notBefore) {
				w.tell(ctx, r, to, now)
			}
		}
	}
}

// tell sends a receiver a message, if there is anything to say.
func (w *Watcher) tell(ctx context.Context, r *rule, to *receiver, now time.Time) {
	var alerts []Active
	news := false
	firing := make(map[string]Active)
	for _, print := range sorted(r.alerts) {
		if a := r.alerts[print]; a.State == Firing {
			known, told := to.told[print]
			news = news || !told || !known.FiredAt.Equal(a.FiredAt)
			alerts = append(alerts, a.Active)
			firing[print] = a.Active
		}
	}
	for _, print := range sorted(to.told) {
		// What fires again by now is told as that.
		if _, again := firing[print]; !again && to.told[print].State == Resolved {
			alerts = append(alerts, to.told[print])
			news = true
		}
	}
	quiet := now.Sub(to.sentAt)
	switch {
	case len(alerts) == 0:
		return
	case news && len(to.told) > 0 && quiet < groupInterval:
		return
	case !news && quiet < r.RepeatEvery.Duration():
		return
	}
	body, err := w.message(r, alerts)
	if err != nil {
		to.problem = err.Error()
		return
	}
	place := w.places[to.kind == "exec"]
	select {
	case place <- struct{}{}:
	default:
		return // too many are under way; the next look tries again
	}
	to.busy = true
	w.senders.Go(func() {
		sending, cancel := context.WithTimeout(ctx, to.timeout)
		err := to.send(sending, body)
		cancel()
		<-place
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent(ctx, r, to, firing, err)
	})
}

// sent notes what became of a message that said what fires.
func (w *Watcher) sent(ctx context.Context, r *rule, to *receiver, firing map[string]Active, err error) {
	to.busy = false
	now := w.o.Now()
	if err == nil {
		if to.problem != "" {
			w.o.Log.Info("alert receiver takes messages again", "rule", r.Name, "receiver", to.name())
		}
		to.told, to.sentAt, to.notBefore, to.failures, to.problem = firing, now, time.Time{}, 0, ""
		to.resolve(r, now) // some may have been resolved while the message was under way
		w.dirty = true
		w.save(now)
		return
	}
	if ctx.Err() != nil {
		return // the hub ends; whoever comes next tells it
	}
	backoff := min(firstBackoff<<min(to.failures, 10), longestBackoff)
	if errors.Is(err, errPermanent) {
		backoff = longestBackoff
	}
	to.failures++
	to.notBefore = now.Add(backoff)
	if to.problem == "" {
		w.o.Log.Warn("alert receiver takes no message", "rule", r.Name, "receiver", to.name(), "error", err)
	}
	to.problem = err.Error()
}

// resolve marks what a receiver believes to fire and does not any more.
func (to *receiver) resolve(r *rule, now time.Time) {
	for print, known := range to.told {
		a := r.alerts[print]
		if known.State == Firing && (a == nil || a.State != Firing || !a.FiredAt.Equal(known.FiredAt)) {
			known.State, known.EndedAt = Resolved, now
			to.told[print] = known
		}
	}
}
