package alert

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
)

// saveEvery is how often it is written how long the pending ones have held, when nothing else
// changes.
const saveEvery = time.Minute

// memoryVersion is that of the form of memory.
const memoryVersion = 1

// memory is what survives a restart.
type memory struct {
	Time  time.Time             `json:"time"`
	Rules map[string]ruleMemory `json:"rules"`
}

type ruleMemory struct {
	Alerts    []Active                  `json:"alerts"`
	Receivers map[string]receiverMemory `json:"receivers"`
}

type receiverMemory struct {
	Told   map[string]Active `json:"told"`
	SentAt time.Time         `json:"sent_at"`
}

func (w *Watcher) path() string { return filepath.Join(w.o.Dir, "alerts.json") }

// save writes what changed. A disk that is full must not keep anybody from being told, so an error
// is a warning.
func (w *Watcher) save(now time.Time) {
	pending := false
	m := memory{Time: now.UTC(), Rules: make(map[string]ruleMemory)}
	for _, r := range w.rules {
		rm := ruleMemory{Alerts: []Active{}, Receivers: make(map[string]receiverMemory)}
		for _, print := range sorted(r.alerts) {
			a := r.alerts[print]
			pending = pending || a.State == Pending
			rm.Alerts = append(rm.Alerts, a.Active)
		}
		for _, to := range r.receivers {
			if len(to.told) > 0 {
				rm.Receivers[to.key()] = receiverMemory{to.told, to.sentAt}
			}
		}
		if len(rm.Alerts)+len(rm.Receivers) > 0 {
			m.Rules[r.Name] = rm
		}
	}
	if w.o.Dir == "" || !w.dirty && !(pending && now.Sub(w.saved) >= saveEvery) {
		return
	}
	err := durable.Remember(w.o.FS, w.path(), memoryVersion, m)
	w.saved = now
	if err != nil {
		if w.notes["state"] == "" {
			w.o.Log.Warn("what is known of alerts is not saved", "error", err)
		}
		w.notes["state"] = fmt.Sprintf("what is known of alerts would not survive a restart: %v", err)
		return
	}
	w.dirty, w.notes["state"] = false, ""
}

// load reads what was known before a restart. What cannot be read is as if it had never been known:
// alerts that fire are then told once more.
func (w *Watcher) load() {
	if w.o.Dir == "" {
		return
	}
	var m memory
	known, err := durable.Recall(w.o.FS, w.path(), memoryVersion, &m)
	if err != nil {
		w.o.Log.Warn("what was known of alerts cannot be read, and those that fire are told again", "error", err)
	}
	if !known {
		return
	}
	for _, r := range w.rules {
		rm := m.Rules[r.Name]
		delete(m.Rules, r.Name)
		for _, a := range rm.Alerts {
			r.alerts[fingerprint(a.Labels)] = w.restored(a, m.Time)
		}
		for _, to := range r.receivers {
			if known, ok := rm.Receivers[to.key()]; ok && known.Told != nil {
				to.told, to.sentAt = known.Told, w.past(known.SentAt)
				to.resolve(r, w.past(m.Time)) // nothing, unless the file was written by hand
			}
		}
	}
	w.endOrphans(m.Rules)
}

// restored is an alert as it was saved, for the time since the start.
func (w *Watcher) restored(a Active, saved time.Time) *alert {
	if a.State == Pending {
		// Nobody knows whether it held while nobody looked: only the time before counts.
		a.ActiveAt = w.started.Add(-max(saved.Sub(a.ActiveAt), 0))
	}
	return &alert{Active: a, lastSeen: w.started, restored: true}
}

// past is a time that a clock which was set back has not yet come to.
func (w *Watcher) past(t time.Time) time.Time {
	if t.After(w.started) {
		return w.started
	}
	return t
}

// endOrphans ends in the timeline what fired of rules that are no more.
func (w *Watcher) endOrphans(rules map[string]ruleMemory) {
	for _, name := range sorted(rules) {
		for _, a := range rules[name].Alerts {
			if a.State != Firing {
				continue
			}
			a.State, a.EndedAt = Resolved, w.started
			w.put(&rule{Config: Config{Name: name, Severity: timeline.Severity(a.Labels["severity"])}},
				fingerprint(a.Labels), &alert{Active: a})
			w.dirty = true
		}
	}
}
