package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// mutations damage a log as disks, editors, administrators and attackers do.
var mutations = map[string]func(*rand.Rand, []byte) []byte{
	"flip a bit": func(r *rand.Rand, b []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	},
	"set a byte":    func(r *rand.Rand, b []byte) []byte { b[r.IntN(len(b))] = byte(r.Uint32()); return b },
	"cut the end":   func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] },
	"cut the start": func(r *rand.Rand, b []byte) []byte { return b[r.IntN(len(b)):] },
	"cut the last frames": func(r *rand.Rand, b []byte) []byte {
		starts := frames(b)
		return b[:starts[r.IntN(len(starts))]]
	},
	"remove a frame": func(r *rand.Rand, b []byte) []byte {
		starts := append(frames(b), len(b))
		i := r.IntN(len(starts) - 1)
		return slices.Delete(b, starts[i], starts[i+1])
	},
	"swap two frames": func(r *rand.Rand, b []byte) []byte {
		starts := append(frames(b), len(b))
		i := r.IntN(len(starts) - 2)
		return slices.Concat(b[:starts[i]], b[starts[i+1]:starts[i+2]], b[starts[i]:starts[i+1]], b[starts[i+2]:])
	},
	"remove some": func(r *rand.Rand, b []byte) []byte {
		from := r.IntN(len(b))
		return slices.Delete(b, from, from+r.IntN(len(b)-from+1))
	},
	"zero some": func(r *rand.Rand, b []byte) []byte {
		from := r.IntN(len(b))
		clear(b[from : from+r.IntN(len(b)-from+1)])
		return b
	},
	"repeat some": func(r *rand.Rand, b []byte) []byte {
		from := r.IntN(len(b))
		return slices.Insert(b, r.IntN(len(b)), b[from:from+r.IntN(len(b)-from+1)]...)
	},
	"insert garbage": func(r *rand.Rand, b []byte) []byte { return slices.Insert(b, r.IntN(len(b)+1), garbage(r)...) },
	"append garbage": func(r *rand.Rand, b []byte) []byte { return append(b, garbage(r)...) },
	"empty":          func(*rand.Rand, []byte) []byte { return nil },
	"a fresh log":    func(_ *rand.Rand, b []byte) []byte { return b[:frames(b)[0]] },
	"remove":         nil,
}

// frames returns where the frames of a log begin.
func frames(b []byte) []int {
	var starts []int
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte{0xF1, 0xAB, 0x52, 0xFE})
		if i < 0 {
			return starts
		}
		starts = append(starts, at+i)
		at += i + 1
	}
}

func garbage(r *rand.Rand) []byte {
	b := make([]byte, 1+r.IntN(300))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestDamageIsNeverSilent: whatever happens to the log of a host with five changes in force, also
// together with the loss of its mark, the next command either knows of all five or reports the
// damage and changes nothing. Only a state directory without both is like a new one.
func TestDamageIsNeverSilent(t *testing.T) {
	const each = 100
	mem, k := durable.NewMem(), host()
	for i := range 5 {
		k.values[knob.ID(fmt.Sprintf("sysctl:net.test.%d", i))] = "old"
	}
	o := options(mem, k, &clock{})
	j := open(t, o)
	var ids []string
	for i := range 5 {
		ids = append(ids, apply(t, j, journal.Request{Reason: "a reason"}, fmt.Sprintf("sysctl:net.test.%d", i), "new")[0].ID)
	}
	if err := j.Commit(t.Context(), ids...); err != nil {
		t.Fatal(err)
	}
	want := j.Changes()
	j.Close()
	log, err := mem.ReadFile("/state/journal.log")
	if err != nil {
		t.Fatal(err)
	}
	reported, harmless := 0, 0
	type damage struct {
		mutate   func(*rand.Rand, []byte) []byte
		unmarked bool
	}
	damages := map[string]damage{
		"no mark": {func(_ *rand.Rand, b []byte) []byte { return b }, true},
	}
	for name, mutate := range mutations {
		damages[name] = damage{mutate, false}
		if mutate != nil {
			damages[name+", no mark"] = damage{mutate, true}
		}
	}
	for name, d := range damages {
		mutate := d.mutate
		random := rand.New(rand.NewPCG(1, uint64(len(name))))
		for n := range each {
			disk := mem.CrashClone(1, nil)
			err := disk.Remove("/state/journal.log")
			if mutate != nil {
				err = durable.Replace(disk, "/state/journal.log", mutate(random, bytes.Clone(log)), 0o644)
			}
			if d.unmarked {
				err = errors.Join(err, disk.Remove("/state/journal.log.mark"))
			}
			if err != nil {
				t.Fatal(err)
			}
			seen, historyErr := journal.History(disk, "/state")
			o.FS = disk
			j, openErr := journal.Open(o)
			if (historyErr == nil) != (openErr == nil) {
				t.Errorf("%s %d: history %v, open %v", name, n, historyErr, openErr)
			}
			if openErr != nil {
				reported++
				if !errors.Is(openErr, journal.ErrCorrupt) {
					t.Errorf("%s %d: %v", name, n, openErr)
				}
				continue
			}
			harmless++
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("%s %d: lost in silence (-want +got):\n%s", name, n, diff)
			}
			if diff := cmp.Diff(want, j.Changes()); diff != "" {
				t.Errorf("%s %d: opened without all changes (-want +got):\n%s", name, n, diff)
			}
			j.Close()
		}
	}
	t.Logf("%d mutations: %d reported, %d harmless", reported+harmless, reported, harmless)
	if reported < 20*each {
		t.Errorf("only %d mutations reached the journal", reported)
	}
}
