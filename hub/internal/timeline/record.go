package timeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of an event's strings, in bytes: longer text is cut, a longer id is an error.
const (
	maxID   = 128
	maxText = 1000
)

// ErrBadID reports a text that cannot be the id of an event.
var ErrBadID = errors.New("not an id: 1 to 128 letters, digits, '.', '_' and '-', and no '.' first")

// ValidID reports whether a text can be the id of an event. Such a text is a safe file name on
// every system.
func ValidID(id string) bool {
	if id == "" || len(id) > maxID || id[0] == '.' {
		return false
	}
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// Normal returns an event as a [Store] keeps it: times in UTC and to the millisecond, text that
// JSON preserves and that is safe to print. An event without id, kind or time is an error.
func (e Event) Normal() (Event, error) {
	if !ValidID(e.ID) {
		return e, fmt.Errorf("event %q: %w", clean(e.ID, maxID), ErrBadID)
	}
	for _, text := range []*string{
		(*string)(&e.Kind), &e.Host, &e.Subject, &e.Interface, &e.Title, (*string)(&e.Severity), &e.State, &e.Undo,
	} {
		*text = clean(*text, maxText)
	}
	if e.Kind == "" {
		return e, fmt.Errorf("event %s: no kind", e.ID)
	}
	for _, t := range []*time.Time{&e.Time, &e.End} {
		// Outside these years RFC 3339 cannot write a time, and its milliseconds overflow an int64.
		if y := t.UTC().Year(); !t.IsZero() && (y < 1970 || y > 9999) {
			return e, fmt.Errorf("event %s: time in the year %d", e.ID, y)
		}
		*t = t.UTC().Truncate(time.Millisecond)
	}
	if e.Time.IsZero() {
		return e, fmt.Errorf("event %s: no time", e.ID)
	}
	if !e.End.IsZero() && e.End.Before(e.Time) {
		e.End = e.Time // a clock was set back in the meantime
	}
	if !e.End.IsZero() {
		e.Open = false
	}
	return e, nil
}

// clean returns text on one line, in UTF-8, of at most limit bytes.
func clean(text string, limit int) string {
	plain := len(text) <= limit && utf8.ValidString(text) && strings.IndexFunc(text, control) < 0
	if plain {
		return text
	}
	text = strings.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return text
}

// control reports whether a character ends a line or controls a terminal.
func control(r rune) bool { return r < ' ' || 0x7F <= r && r < 0xA0 || r == '\u2028' || r == '\u2029' }

// marshalRecord returns the record of a normal event.
func marshalRecord(e Event) ([]byte, error) { return json.Marshal(e) }

// parseRecord parses one record. Its result is normal, also for records of other program versions.
func parseRecord(data []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(data, &e); err != nil {
		return Event{}, fmt.Errorf("read event: %w", err)
	}
	e, err := e.Normal()
	if err != nil {
		return Event{}, fmt.Errorf("read event: %w", err)
	}
	return e, nil
}

// ends returns when an event is over; an open one never is.
func (e *Event) ends() time.Time {
	switch {
	case e.Open:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	case e.End.IsZero():
		return e.Time
	}
	return e.End
}
