package world

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// Names returns the questions of a load on the world's names: each once, and at random, all equally
// often.
func Names(count int) (each, random *names.Set, err error) {
	o := message.QueryOptions{Recursion: true, UDPBytes: 1232}
	if random, err = (names.Model{Domain: "bench.test", Population: count, HitRatio: 1}).New(o); err != nil {
		return nil, nil, err
	}
	var list strings.Builder
	for i := range count {
		fmt.Fprintf(&list, "h%d.live.bench.test A\n", i)
	}
	each, err = names.Read(strings.NewReader(list.String()), o)
	return each, random, err
}

// Fresh measures how long a recursor serves the old data of a changed record, with lines of its
// configuration; nil: longer than four times the record's time to live. It restarts nothing that
// runs: no other recursor may be in the namespace.
func Fresh(ctx context.Context, kind Recursor, dir string, options []string) (*float64, error) {
	watch, err := watchDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer watch.Close() // the recursor has ended
	var row Row
	err = Options{Recursor: kind}.fresh(ctx, Variant{Options: options, Scaled: scaled(options)}, dir, &row)
	return row.FreshSeconds, err
}

// times are the options of which the value is a time to live.
var times = []string{"max-cache-ttl", "max-ncache-ttl", "cache-max-ttl", "cache-max-negative-ttl", "cache.max_ttl"}

// scaled returns options with times a thirtieth of theirs. It leaves out prefetch, whose two
// seconds cannot be shortened.
func scaled(options []string) []string {
	all := []string{}
	for _, o := range options {
		name := optionName(o)
		if name == "prefetch" {
			continue
		}
		if slices.Contains(times, name) {
			digits := strings.Trim(o[len(name):], " :(;)")
			if n, err := strconv.Atoi(digits); err == nil {
				o = strings.Replace(o, digits, fmt.Sprint(max(1, n/scale)), 1)
			}
		}
		all = append(all, o)
	}
	return all
}

// optionName is the first word of a line.
func optionName(o string) string {
	if at := strings.IndexAny(o, " :(="); at > 0 {
		return o[:at]
	}
	return o
}
