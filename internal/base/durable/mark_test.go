package durable_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
)

// TestMarkAfterPowerLoss: after a power loss at any operation of a life with appends and a rewrite,
// the mark agrees with the log that is there.
func TestMarkAfterPowerLoss(t *testing.T) {
	const path = "/log"
	life := func(fsys durable.FS) {
		log, _, err := durable.OpenMarkedLog(fsys, path)
		if err != nil {
			return
		}
		for i := range 3 {
			_ = log.Append(fmt.Appendf(nil, "record %d", i)) // a fault ends the life early
		}
		_ = log.Close()
		if durable.RewriteMarkedLog(fsys, path, [][]byte{[]byte("all")}) != nil {
			return
		}
		if log, _, err = durable.OpenMarkedLog(fsys, path); err == nil {
			_ = log.Append([]byte("more"))
			_ = log.Close()
		}
	}
	count := durable.NewFaulty(durable.NewMem(), func(durable.Op) error { return nil })
	life(count)
	for n := range count.Operations() {
		mem, random := durable.NewMem(), rand.New(rand.NewPCG(1, uint64(n)))
		var crashed []*durable.Mem
		life(durable.NewFaulty(mem, func(op durable.Op) error {
			if op.N == n {
				for range 20 {
					crashed = append(crashed, mem.CrashClone(0.5, random))
				}
			}
			return nil
		}))
		for _, disk := range crashed {
			if _, _, err := durable.ReadMarkedLog(disk, path); errors.Is(err, durable.ErrCorrupt) {
				t.Fatalf("power loss before operation %d: %v", n, err)
			}
			log, _, err := durable.OpenMarkedLog(disk, path)
			if err != nil {
				t.Fatalf("power loss before operation %d: %v", n, err)
			}
			_ = log.Close()
		}
	}
}

// TestMarkNoticesTheEnd: a log whose last records are cut off cleanly, that is replaced, or that is
// gone is damaged; without a mark it is only shorter.
func TestMarkNoticesTheEnd(t *testing.T) {
	const path = "/log"
	mem := durable.NewMem()
	log, _, err := durable.OpenMarkedLog(mem, path)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for i := range 3 {
		sizes = append(sizes, log.Size())
		if err := log.Append(fmt.Appendf(nil, "record %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	log.Close()
	data, err := mem.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := durable.NewMem()
	if err := durable.RewriteLog(other, path, [][]byte{[]byte("x"), []byte("y"), []byte("z")}); err != nil {
		t.Fatal(err)
	}
	strange, _ := other.ReadFile(path)
	for want, content := range map[string][]byte{
		"1 of 3 records are missing at the end": data[:sizes[2]],
		"3 of 3 records are missing at the end": data[:sizes[0]],
		"not the log that its mark belongs to":  strange,
		"the log is missing, its mark is there": nil,
	} {
		disk := mem.CrashClone(1, nil)
		if err := disk.Remove(path); err != nil {
			t.Fatal(err)
		}
		if content != nil {
			if err := durable.Replace(disk, path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // reported again, until a person has looked
			_, _, readErr := durable.ReadMarkedLog(disk, path)
			_, _, openErr := durable.OpenMarkedLog(disk, path)
			for _, err := range []error{readErr, openErr} {
				if !errors.Is(err, durable.ErrCorrupt) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		}
	}
}
