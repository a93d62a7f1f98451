package alert

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
)

// saveEvery is the time between two writes of how long pending alerts have held, while nothing else
// changes.
const saveEvery = time.Minute

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
	Told   map[string]Active `json:"told"`
	SentAt time.Time         `json:"sent_at"`
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
				rm.Receivers[to.key()] = receiverMemory{to.known, to.sentAt}
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
	known, err := durable.Recall(w.o.FS, w.path(), memoryVersion, &m)
	if err != nil {
		w.o.Log.Warn("the state of alerts cannot be read: the hub sends those that fire again", "error", err)
	}
	if !known {
		return
	}
	for _, r := range w.rules {
		rm := m.Rules[r.Name]
		delete(m.Rules, r.Name)
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
	w.endOrphans(m.Rules)
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

// endOrphans ends the events of alerts whose rules no longer exist.
func (w *Watcher) endOrphans(rules map[string]ruleMemory) {
	for _, name := range sorted(rules) {
		for _, a := range rules[name].Alerts {
			if a.State != Firing {
				continue
			}
			a.State, a.EndedAt = Resolved, w.started
			w.put(&rule{Config: Config{Name: name, Severity: timeline.Severity(a.Labels["severity"])}},
				fingerprint(a.Labels), a)
			w.dirty = true
		}
	}
}
