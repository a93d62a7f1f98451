package alert

import (
	"cmp"
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
	firstBackoff   = 5 * time.Second // after a refused message; doubled each time
	longestBackoff = 5 * time.Minute
)

// errPermanent reports that a receiver refused a message, and would refuse it again a moment later.
var errPermanent = errors.New("refused for good")

// receiver gets the messages about one rule. It remembers which alerts the other end knows.
type receiver struct {
	kind, to string // "webhook" or "alertmanager" and the address, "exec" and the command
	timeout  time.Duration
	send     func(ctx context.Context, body []byte) error
	hook     *Webhook // of kind "webhook": what a state file needs to send a last message

	// alerts that fire as far as the receiver knows, by their fingerprints; Resolved: the message
	// about the end is still to be sent
	known     map[string]Active
	sentAt    time.Time // of the last message that it took
	notBefore time.Time // earliest time of a retry
	failures  int
	problem   string
	busy      bool // a message is under way
}

func newReceiver(kind, to string, timeout time.Duration, send func(ctx context.Context, body []byte) error) *receiver {
	return &receiver{kind: kind, to: to, timeout: cmp.Or(timeout, defaultTimeout), send: send,
		known: make(map[string]Active)}
}

// key returns the name of the receiver on disk. An address may itself be a secret.
func (to *receiver) key() string {
	sum := sha256.Sum256([]byte(to.kind + " " + to.to))
	return hex.EncodeToString(sum[:8])
}

// name returns the name of the receiver in logs: of an address only the host, since the path is
// often a secret.
func (to *receiver) name() string {
	if u, err := url.Parse(to.to); to.kind != "exec" && err == nil {
		return to.kind + " " + u.Scheme + "://" + u.Host
	}
	return to.kind + " " + to.to
}

// dispatch sends every receiver what it does not know yet, without waiting for any.
func (w *Watcher) dispatch(ctx context.Context, now time.Time) {
	w.letGo(now)
	for _, r := range w.receiving() {
		for _, to := range r.receivers {
			if !to.busy && !now.Before(to.notBefore) {
				w.notify(ctx, r, to, now)
			}
		}
	}
}

// notify sends a receiver a message if it is due one.
func (w *Watcher) notify(ctx context.Context, r *rule, to *receiver, now time.Time) {
	var alerts []Active
	news := false
	firing := make(map[string]Active)
	for _, print := range sorted(r.alerts) {
		if a := r.alerts[print]; a.State == Firing {
			known, ok := to.known[print]
			news = news || !ok || !known.FiredAt.Equal(a.FiredAt)
			alerts = append(alerts, a)
			firing[print] = a
		}
	}
	for _, print := range sorted(to.known) {
		// An alert that fires again is sent as firing only.
		if _, again := firing[print]; !again && to.known[print].State == Resolved {
			alerts = append(alerts, to.known[print])
			news = true
		}
	}
	quiet, repeat := now.Sub(to.sentAt), r.RepeatEvery.Duration()
	if to.kind == "alertmanager" {
		repeat = groupInterval // it resolves alerts that are not sent again, and decides itself what to repeat
	}
	switch {
	case len(alerts) == 0:
		return
	case news && len(to.known) > 0 && quiet < groupInterval:
		return
	case !news && quiet < repeat:
		return
	}
	body, err := w.message(r, to, alerts, now)
	if err != nil {
		to.problem = err.Error()
		return
	}
	place := w.places[to.kind == "exec"]
	select {
	case place <- struct{}{}:
	default:
		return // too many are under way; the next evaluation retries
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

// sent records the result of a message that reported what fires.
func (w *Watcher) sent(ctx context.Context, r *rule, to *receiver, firing map[string]Active, err error) {
	to.busy = false
	now := w.o.Now()
	if err == nil {
		if to.problem != "" {
			w.o.Log.Info("alert receiver takes messages again", "rule", r.Name, "receiver", to.name())
		}
		to.known, to.sentAt, to.notBefore, to.failures, to.problem = firing, now, time.Time{}, 0, ""
		to.resolve(r, now) // some may have ended while the message was under way
		w.dirty = true
		w.save(now)
		return
	}
	if ctx.Err() != nil {
		return // the hub ends; its next start sends the message
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

// resolve marks the alerts that a receiver knows as firing and that no longer do.
func (to *receiver) resolve(r *rule, now time.Time) {
	for print, known := range to.known {
		a := r.alerts[print]
		if known.State == Firing && (a.State != Firing || !a.FiredAt.Equal(known.FiredAt)) {
			known.State, known.EndedAt = Resolved, now
			to.known[print] = known
		}
	}
}
