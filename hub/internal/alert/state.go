package alert

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// saveEvery is the time between two writes of how long pending alerts have held, while nothing else
// changes.
const saveEvery = time.Minute

// lastMessageWithin is how long the hub tries to send the last message to a receiver that has left
// the configuration.
const lastMessageWithin = 24 * time.Hour

// memoryVersion is the version of the format of memory.
const memoryVersion = 1

// memory is the state that survives a restart.
type memory struct {
	Time  time.Time             `json:"time"`
	Rules map[string]ruleMemory `json:"rules"`
}

type ruleMemory struct {
	Alerts    []Active                  `json:"alerts"`
	Receivers map[string]receiverMemory `json:"receivers"`
}

type receiverMemory struct {
	Told    map[string]Active `json:"told"`
	SentAt  time.Time         `json:"sent_at"`
	Webhook *Webhook          `json:"webhook,omitempty"` // for a last message, if it is no longer configured
	Gone    time.Time         `json:"gone,omitzero"`     // since when it is no longer configured
}

func (w *Watcher) path() string { return filepath.Join(w.o.Dir, "alerts.json") }

// save writes the state if it changed. A full disk must not suppress messages, so an error is a
// warning.
func (w *Watcher) save(now time.Time) {
	pending := false
	m := memory{Time: now.UTC(), Rules: make(map[string]ruleMemory)}
	for _, r := range w.rules {
		rm := ruleMemory{Alerts: []Active{}, Receivers: make(map[string]receiverMemory)}
		for _, print := range sorted(r.alerts) {
			a := r.alerts[print]
			pending = pending || a.State == Pending
			rm.Alerts = append(rm.Alerts, a)
		}
		for _, print := range sorted(r.restored) {
			if !has(r.alerts, print) {
				rm.Alerts = append(rm.Alerts, r.restored[print].Active)
			}
		}
		for _, to := range r.receivers {
			if len(to.known) > 0 {
				rm.Receivers[to.key()] = receiverMemory{Told: to.known, SentAt: to.sentAt, Webhook: to.hook}
			}
		}
		if len(rm.Alerts)+len(rm.Receivers) > 0 {
			m.Rules[r.Name] = rm
		}
	}
	for _, r := range w.leaving {
		rm, known := m.Rules[r.Name]
		if !known {
			rm = ruleMemory{Alerts: []Active{}, Receivers: make(map[string]receiverMemory)}
		}
		to := r.receivers[0]
		rm.Receivers[to.key()] = receiverMemory{Told: to.known, SentAt: to.sentAt, Webhook: to.hook, Gone: r.due}
		m.Rules[r.Name] = rm
	}
	if w.o.Dir == "" || !w.dirty && !(pending && now.Sub(w.saved) >= saveEvery) {
		return
	}
	err := durable.Remember(w.o.FS, w.path(), memoryVersion, m)
	w.saved = now
	if err != nil {
		if w.notes["state"] == "" {
			w.o.Log.Warn("the state of alerts is not saved", "error", err)
		}
		w.notes["state"] = fmt.Sprintf("the state of alerts would not survive a restart: %v", err)
		return
	}
	w.dirty, w.notes["state"] = false, ""
}

// load reads the state from before a restart. Without a readable file, alerts that fire are sent
// once more.
func (w *Watcher) load() {
	if w.o.Dir == "" {
		return
	}
	var m memory
	if _, err := durable.Recall(w.o.FS, w.path(), memoryVersion, &m); err != nil {
		w.o.Log.Warn("the state of alerts cannot be read: the hub sends those that fire again", "error", err)
	}
	for _, r := range w.rules {
		rm := m.Rules[r.Name]
		for _, a := range rm.Alerts {
			print, was := fingerprint(a.Labels), w.restored(a, m.Time)
			r.restored[print], r.alerts[print] = was, was.Active
		}
		for _, to := range r.receivers {
			if known, ok := rm.Receivers[to.key()]; ok && known.Told != nil {
				to.known, to.sentAt = known.Told, w.past(known.SentAt)
				to.resolve(r, w.past(m.Time)) // nothing, unless the file was written by hand
			}
		}
	}
	for _, name := range sorted(m.Rules) {
		for _, key := range sorted(m.Rules[name].Receivers) {
			w.leave(name, key, m.Rules[name].Receivers[key])
		}
	}
	w.endOrphans()
}

// leave makes the last message to a receiver that has left its rule. The message ends the alerts
// that the receiver knows, because no other one will. A program that is no longer configured is not
// run, and an Alertmanager ends what it does not hear of again.
func (w *Watcher) leave(name, key string, known receiverMemory) {
	var to *receiver
	for _, r := range w.rules {
		for _, one := range r.receivers {
			if one.key() != key {
				continue
			}
			if r.Name == name {
				return // it has it
			}
			to = &receiver{kind: one.kind, to: one.to, timeout: one.timeout, send: one.send, hook: one.hook}
		}
	}
	if to == nil && known.Webhook != nil && known.Webhook.problem() == "" {
		to = w.webhook(*known.Webhook)
	}
	w.dirty = true
	if len(known.Told) == 0 || to != nil && to.kind == "alertmanager" {
		return
	}
	if to == nil {
		w.o.Log.Warn("a receiver of alerts is no longer configured and does not hear that they ended", "rule", name,
			"alerts", len(known.Told))
		return
	}
	r := &rule{Config: Config{Name: name}, receivers: []*receiver{to}, due: w.past(known.Gone)}
	if known.Gone.IsZero() {
		r.due = w.started
	}
	to.known, to.sentAt = known.Told, w.past(known.SentAt)
	to.resolve(r, w.started)
	w.o.Log.Info("a receiver of alerts is no longer configured: it gets a last message", "rule", name,
		"receiver", to.name(), "alerts", len(to.known))
	w.leaving = append(w.leaving, r)
}

// letGo forgets the receivers that left: those that know it, and those that take no message for a
// day. The caller holds mu.
func (w *Watcher) letGo(now time.Time) {
	w.leaving = slices.DeleteFunc(w.leaving, func(r *rule) bool {
		to := r.receivers[0]
		if to.busy || len(to.known) > 0 && now.Sub(r.due) < lastMessageWithin {
			return false
		}
		if len(to.known) > 0 {
			w.o.Log.Warn("a receiver of alerts that is no longer configured did not hear that they ended", "rule", r.Name,
				"receiver", to.name(), "problem", to.problem)
		}
		w.dirty = true
		return true
	})
}

// restored returns an alert as it was saved, with times that count from the start.
func (w *Watcher) restored(a Active, saved time.Time) *restored {
	if a.State == Pending {
		// No evaluation saw whether it held in the meantime: only the time before counts.
		a.ActiveAt = w.started.Add(-max(saved.Sub(a.ActiveAt), 0))
	}
	return &restored{Active: a}
}

// past returns a time, or the start for a time that a clock set back has not reached yet.
func (w *Watcher) past(t time.Time) time.Time {
	if t.After(w.started) {
		return w.started
	}
	return t
}

// endOrphans ends the events of alerts that are not known any more: their rule no longer exists, or
// the hub was killed before it saved them.
func (w *Watcher) endOrphans() {
	if w.o.Open == nil {
		return
	}
	known := make(map[string]bool)
	for _, r := range w.rules {
		for print, a := range r.alerts {
			known[eventID(r, print, a)] = a.State == Firing
		}
	}
	for _, e := range w.o.Open() {
		if !e.Open || known[e.ID] {
			continue
		}
		e.Open, e.End, e.State = false, w.started.UTC(), string(Resolved)
		w.putEvent(e)
		w.dirty = true
	}
}
