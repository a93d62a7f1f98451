package timeline

import (
	"cmp"
	"slices"
	"time"
)

// blockSize is the number of events that the index of spans groups: a query for spans that began
// long before skips a block at once.
const blockSize = 256

// entry is an event in memory, and its place on disk.
type entry struct {
	Event
	segment  *segment // has its last written state; nil: none
	bytes    int64    // of the record in segment, frame included
	document int64    // size of its document; -1: none
	dirty    bool     // must be written
}

// size returns the bytes of an event and its document on disk.
func (e *entry) size() int64 { return e.bytes + max(e.document, 0) }

// index holds the events by id and by time. Its zero value is empty.
type index struct {
	byID map[string]*entry
	// order is sorted by time, then by id.
	order []*entry
	// latest has for each block of order the last moment at which one of its events lasted, in
	// milliseconds of Unix time.
	latest []int64
}

func byTime(a, b *entry) int {
	if c := a.Time.Compare(b.Time); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// put stores an event in place of the one with the same id, and returns its entry.
func (x *index) put(e Event) *entry {
	if x.byID == nil {
		x.byID = make(map[string]*entry)
	}
	have := x.byID[e.ID]
	if have != nil && have.Time.Equal(e.Time) {
		i, _ := slices.BinarySearchFunc(x.order, have, byTime)
		have.Event = e
		x.block(i / blockSize)
		return have
	}
	from := len(x.order)
	if have != nil {
		from, _ = slices.BinarySearchFunc(x.order, have, byTime)
		x.order = slices.Delete(x.order, from, from+1)
		have.Event = e
	} else {
		have = &entry{Event: e, document: -1}
		x.byID[e.ID] = have
	}
	at, _ := slices.BinarySearchFunc(x.order, have, byTime)
	x.order = slices.Insert(x.order, at, have)
	if at == len(x.order)-1 && from >= at && at%blockSize != 0 {
		x.latest[at/blockSize] = max(x.latest[at/blockSize], have.ends().UnixMilli())
		return have // the newest of all, as almost always
	}
	x.blocks(min(from, at))
	return have
}

// drop removes events.
func (x *index) drop(gone map[*entry]bool) {
	if len(gone) == 0 {
		return
	}
	for e := range gone {
		delete(x.byID, e.ID)
	}
	x.order = slices.DeleteFunc(x.order, func(e *entry) bool { return gone[e] })
	x.blocks(0)
}

// blocks recomputes the blocks from the one that contains a position.
func (x *index) blocks(position int) {
	n := (len(x.order) + blockSize - 1) / blockSize
	for len(x.latest) < n {
		x.latest = append(x.latest, 0)
	}
	x.latest = x.latest[:n]
	for b := min(position, len(x.order)) / blockSize; b < n; b++ {
		x.block(b)
	}
}

func (x *index) block(b int) {
	x.latest[b] = 0
	for _, e := range x.order[b*blockSize : min((b+1)*blockSize, len(x.order))] {
		x.latest[b] = max(x.latest[b], e.ends().UnixMilli())
	}
}

// between returns what happened or lasted between two moments, both included, oldest first; of more
// than q.Limit events, or q.PerKind of one kind, the newest.
func (x *index) between(start, end time.Time, q Query) (found []Event, truncated bool) {
	after := len(x.order)
	if !end.IsZero() {
		after, _ = slices.BinarySearchFunc(x.order, end, func(e *entry, t time.Time) int {
			if e.Time.After(t) {
				return 1
			}
			return -1
		})
	}
	taken := make(map[Kind]int)
	for i := after - 1; i >= 0; i-- {
		if (i+1)%blockSize == 0 || i == after-1 {
			for i >= 0 && x.latest[i/blockSize] < start.UnixMilli() {
				i = i/blockSize*blockSize - 1
			}
			if i < 0 {
				break
			}
		}
		e := x.order[i]
		if e.ends().Before(start) || !q.takes(&e.Event) {
			continue
		}
		if len(found) == q.Limit {
			truncated = true
			break
		}
		if taken[e.Kind]++; q.PerKind > 0 && taken[e.Kind] > q.PerKind {
			truncated = true
			continue
		}
		found = append(found, e.Event)
	}
	slices.Reverse(found)
	return found, truncated
}

// takes reports whether a query selects an event, apart from its time.
func (q *Query) takes(e *Event) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind)) && (q.Host == "" || q.Host == e.Host) &&
		(q.Subject == "" || q.Subject == e.Subject)
}
