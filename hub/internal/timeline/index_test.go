package timeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
)

// TestBetween compares the index with a plain scan.
func TestBetween(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	s := open(t, Options{FS: durable.NewMem()})
	kinds := []Kind{Change, Run, Finding}
	all := make(map[string]Event)
	for i := range 3000 {
		e := event(fmt.Sprint("e", random.IntN(2000)), random.IntN(100_000))
		e.Kind, e.Host, e.Subject = kinds[random.IntN(3)], fmt.Sprint("h", random.IntN(2)),
			fmt.Sprint("eth", random.IntN(3))
		if have, ok := all[e.ID]; ok && (i > 2500 || random.IntN(2) == 0) {
			e.Time = have.Time // and in the end nothing else, which would set right what this did not
		} else if i > 2500 {
			continue
		}
		switch random.IntN(1000) {
		case 0:
			e.Open = true
		case 1, 2, 3, 4, 5, 6, 7, 8, 9:
			e.End = e.Time.Add(time.Duration(random.IntN(50_000)) * time.Second)
		default:
			e.End = e.Time.Add(time.Duration(random.IntN(100)) * time.Second)
		}
		if i > 2500 {
			e.Open, e.End = false, e.Time.Add(time.Duration(random.IntN(90_000))*time.Second)
		}
		put(t, s, e, "")
		all[e.ID] = e
	}
	some := false
	for range 2000 {
		var start, end time.Time
		if random.IntN(10) > 0 {
			start = at(random.IntN(100_000))
		}
		if random.IntN(10) > 0 {
			end = start.Add(time.Duration(random.IntN(5000)) * time.Second)
		}
		q := Query{Limit: 1 + random.IntN(40)}
		if random.IntN(2) == 0 {
			q.Kinds, q.Host, q.Subject = kinds[:random.IntN(3)], "h1", "eth2"
		}
		var want []Event
		for _, e := range all {
			if (end.IsZero() || !e.Time.After(end)) && (e.Open || !e.Time.Before(start) || !e.End.Before(start)) &&
				q.takes(&e) {
				want = append(want, e)
			}
		}
		slices.SortFunc(want, func(a, b Event) int {
			if c := a.Time.Compare(b.Time); c != 0 {
				return c
			}
			return strings.Compare(a.ID, b.ID)
		})
		more := len(want) > q.Limit
		if random.IntN(3) == 0 {
			q.PerKind = 1 + random.IntN(20)
			before := len(want)
			want = newestOfEach(want, q.PerKind)
			more = len(want) < before || len(want) > q.Limit
		}
		want = want[max(0, len(want)-q.Limit):]
		got, truncated := s.Between(start, end, q)
		if ids(got) != ids(want) || truncated != more {
			t.Fatalf("%v to %v, %+v:\n%s, %v\nwant\n%s, %v", start, end, q, ids(got), truncated, ids(want), more)
		}
		some = some || len(got) > 0 && more
	}
	if !some {
		t.Error("no query had more than its limit")
	}
}

// newestOfEach returns the newest events of each kind, oldest first.
func newestOfEach(all []Event, n int) []Event {
	seen := make(map[Kind]int)
	var kept []Event
	for _, e := range slices.Backward(all) {
		if seen[e.Kind]++; seen[e.Kind] <= n {
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

// TestPerKind checks that pings by a schedule displace no change, in an answer and in the store.
func TestPerKind(t *testing.T) {
	s := open(t, Options{FS: durable.NewMem()})
	s.maxEvents = 3000
	change := event("0001", 0)
	change.Kind = Change
	put(t, s, change, "")
	for i := range 10_000 {
		e := event(fmt.Sprint("ping", i), 1+i)
		e.Kind = Measurement
		put(t, s, e, "")
	}
	got, truncated := s.Between(time.Time{}, time.Time{}, Query{PerKind: 1000})
	if len(got) != 1001 || got[0].ID != "0001" || got[1].ID != "ping9000" || !truncated {
		t.Errorf("%d events from %s on, truncated %v", len(got), got[0].ID, truncated)
	}
	if got, truncated := s.Between(time.Time{}, time.Time{}, Query{PerKind: 5000}); len(got) < 2900 || truncated {
		t.Errorf("%d events, truncated %v", len(got), truncated)
	}
}

// FuzzRecord checks that the parser returns an error for a bad record, and that a good one survives
// marshalling unchanged.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{"id":"0001","kind":"change","time":"2026-11-22T12:00:00Z","host":"a","title":"t"}`,
		`{"id":"x","kind":"gap","time":"2026-11-22T12:00:00.123456789+01:00","end":"2026-11-22T11:00:00Z",` +
			`"open":true,"host":"\u2028","title":"\ud800"}`,
		`{"id":"../x","kind":"gap","time":"2026-11-22T12:00:00Z"}`,
		`{"id":"x","kind":"k","time":"9999-12-31T23:59:59-23:59"}`, `{}`, `null`, ``, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseRecord(data)
		if err != nil {
			return
		}
		if !ValidID(e.ID) || strings.ContainsAny(e.ID, `/\:`) {
			t.Fatalf("id %q", e.ID)
		}
		record, err := marshalRecord(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseRecord(record)
		if err != nil || !cmp.Equal(again, e) {
			t.Fatalf("%s: %+v, %v, want %+v", record, again, err, e)
		}
	})
}
