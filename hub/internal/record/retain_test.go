package record

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
)

func TestToDelete(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	const day = 24 * hour
	now := 1000 * day
	// a block of 100 bytes an hour for each range of hours before now, named by its number
	blocks := func(ranges ...[2]int64) (out []block) {
		for i, r := range ranges {
			out = append(out, block{id: ulid.ULID{byte(i)}, from: now - r[0]*hour, to: now - r[1]*hour,
				size: 100 * (r[0] - r[1])})
		}
		return out
	}
	days := func(n int64) (out [][2]int64) {
		for d := n; d > 0; d-- {
			out = append(out, [2]int64{24 * d, 24 * (d - 1)})
		}
		return out
	}
	for name, c := range map[string]struct {
		blocks []block
		o      Options
		free   int64
		want   []int
	}{
		"none":    {nil, Options{Retention: 15 * 24 * time.Hour}, 0, nil},
		"by time": {blocks(days(5)...), Options{Retention: 3 * 24 * time.Hour}, 0, []int{0, 1}},
		"young":   {blocks(days(5)...), Options{Retention: 9 * 24 * time.Hour}, 0, nil},
		"by size": {blocks(days(5)...), Options{Retention: 9 * 24 * time.Hour, MaxBytes: 3*2400 + 50}, 0,
			[]int{0, 1}},
		"the log is size": {blocks(days(5)...), Options{Retention: 9 * 24 * time.Hour, MaxBytes: 3 * 2400}, 0,
			[]int{0, 1, 2}},
		// The clock was in the future for less than two hours: nothing is too old.
		"clock ahead": {blocks(append(days(5), [2]int64{-9000, -9001})...), Options{Retention: 3 * 24 * time.Hour}, 0,
			[]int{0, 1}},
		// The clock is right again, after it was ahead.
		"clock was ahead": {blocks(append(days(2), [2]int64{-10, -20})...), Options{Retention: 24 * time.Hour},
			0, []int{0}},
		"just begun": {blocks([2]int64{500, 499}, [2]int64{1, 0}), Options{Retention: 24 * time.Hour}, 0, nil},
		// The disk is full: 2400 bytes each, and 5000 are wanted.
		"full": {blocks(days(8)...), Options{Retention: 15 * 24 * time.Hour, MinFreeBytes: 4000},
			1000, []int{0, 1, 2}},
		"full, and of no use": {blocks(days(4)...),
			Options{Retention: 15 * 24 * time.Hour, MinFreeBytes: 40000}, 1000, nil},
		"full, the last days stay": {blocks(days(2)...), Options{Retention: 15 * 24 * time.Hour, MinFreeBytes: 4000},
			3000, nil},
		"full, what is old is enough": {blocks(days(8)...), Options{Retention: 6 * 24 * time.Hour, MinFreeBytes: 2000},
			1000, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			free := c.free
			if o.MinFreeBytes == 0 {
				free = 1 << 40
			}
			var got []int
			for id := range toDelete(slices.Clone(c.blocks), o, 50, free, now) {
				got = append(got, int(id[0]))
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("deleted (-want +got), 0 is the oldest:\n%s", diff)
			}
		})
	}
	// The order of the blocks does not matter.
	all := blocks(days(5)...)
	slices.Reverse(all)
	if got := toDelete(all, Options{Retention: 3 * 24 * time.Hour}, 0, 0, now); len(got) != 2 {
		t.Error(fmt.Sprint(got))
	}
}
