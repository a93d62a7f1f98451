package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
)

const logFile = "/d/log"

func newDisk(t testing.TB) *durable.Mem {
	t.Helper()
	mem := durable.NewMem()
	if err := durable.MkdirAll(mem, "/d", 0o755); err != nil {
		t.Fatal(err)
	}
	return mem
}

// putLog stores bytes as a synced log.
func putLog(t testing.TB, mem *durable.Mem, data []byte) {
	t.Helper()
	if err := durable.Replace(mem, logFile, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// logOf returns the bytes of a log with these records, and the offset of each frame; the last
// offset is the end.
func logOf(t testing.TB, records ...string) (data []byte, offsets []int) {
	t.Helper()
	mem := newDisk(t)
	log, _, err := durable.OpenLog(mem, logFile)
	if err != nil {
		t.Fatal(err)
	}
	offsets = append(offsets, int(log.Size()))
	for _, record := range records {
		if err := log.Append([]byte(record)); err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, int(log.Size()))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	data, err = mem.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	return data, offsets
}

func texts(records [][]byte) []string {
	list := []string{}
	for _, r := range records {
		list = append(list, string(r))
	}
	return list
}

func TestLogRoundTrip(t *testing.T) {
	for name, start := range implementations(t) {
		t.Run(name, func(t *testing.T) {
			fsys, dir := start(t)
			path := dir + "/log"
			var want []string
			for round := range 3 {
				log, records, err := durable.OpenLog(fsys, path)
				must(t, err)
				if diff := cmp.Diff(append([]string{}, want...), texts(records)); diff != "" {
					t.Fatal(diff)
				}
				for i := range 3 {
					record := strings.Repeat(fmt.Sprint(round, i), i*300) // The first is empty.
					must(t, log.Append([]byte(record)))
					want = append(want, record)
				}
				must(t, log.Close())
			}
			records, torn, err := durable.ReadLog(fsys, path)
			must(t, err)
			if diff := cmp.Diff(want, texts(records)); diff != "" || torn != 0 {
				t.Fatalf("torn %d: %s", torn, diff)
			}
			must(t, durable.RewriteLog(fsys, path, records[7:]))
			records, _, err = durable.ReadLog(fsys, path)
			must(t, err)
			if diff := cmp.Diff(want[7:], texts(records)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestLogIsNotThere(t *testing.T) {
	if _, _, err := durable.ReadLog(durable.NewMem(), logFile); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestLogRecordTooLong(t *testing.T) {
	log, _, err := durable.OpenLog(newDisk(t), logFile)
	must(t, err)
	if err := log.Append(make([]byte, durable.MaxRecord+1)); err == nil || log.Err() != nil {
		t.Fatalf("append: %v, log: %v", err, log.Err())
	}
	must(t, log.Append(make([]byte, durable.MaxRecord)))
}

// TestLogCutAtEveryByte checks a log truncated at any byte: it has the complete records before, the
// rest is a torn tail, and appending works.
func TestLogCutAtEveryByte(t *testing.T) {
	all := []string{"first", "", "third record"}
	data, offsets := logOf(t, all...)
	for end := offsets[0]; end <= len(data); end++ {
		whole := 0
		for whole < len(all) && offsets[whole+1] <= end {
			whole++
		}
		mem := newDisk(t)
		putLog(t, mem, data[:end])
		records, torn, err := durable.ReadLog(mem, logFile)
		must(t, err)
		if diff := cmp.Diff(append([]string{}, all[:whole]...), texts(records)); diff != "" ||
			torn != int64(end-offsets[whole]) {
			t.Fatalf("cut at %d: torn %d: %s", end, torn, diff)
		}
		log, _, err := durable.OpenLog(mem, logFile)
		must(t, err)
		must(t, log.Append([]byte("next")))
		must(t, log.Close())
		records, torn, err = durable.ReadLog(mem.CrashClone(0, nil), logFile)
		must(t, err)
		if diff := cmp.Diff(append(append([]string{}, all[:whole]...), "next"), texts(records)); diff != "" ||
			torn != 0 {
			t.Fatalf("cut at %d, then appended: torn %d: %s", end, torn, diff)
		}
	}
	for end := range offsets[0] {
		mem := newDisk(t)
		putLog(t, mem, data[:end])
		if _, _, err := durable.OpenLog(mem, logFile); !errors.Is(err, durable.ErrCorrupt) {
			t.Fatalf("file header cut at %d: %v", end, err)
		}
	}
}

// TestLogDamageAtEveryByte checks that one damaged byte is corruption, except in the last frame,
// where it looks the same as a torn write. No damage ever yields a record that was not written.
func TestLogDamageAtEveryByte(t *testing.T) {
	all := []string{"first", "second one", "third"}
	data, offsets := logOf(t, all...)
	for i := range data {
		for _, flip := range []byte{0x01, 0x80, 0xFF} {
			damaged := bytes.Clone(data)
			damaged[i] ^= flip
			mem := newDisk(t)
			putLog(t, mem, damaged)
			_, records, err := durable.OpenLog(mem, logFile)
			if i >= offsets[2] {
				must(t, err)
				if diff := cmp.Diff(all[:2], texts(records)); diff != "" {
					t.Fatalf("byte %d: %s", i, diff)
				}
				continue
			}
			var corrupt *durable.CorruptError
			if !errors.As(err, &corrupt) || !errors.Is(err, durable.ErrCorrupt) || corrupt.Path != logFile {
				t.Fatalf("byte %d: %v", i, err)
			}
			if after, _ := mem.ReadFile(logFile); !bytes.Equal(after, damaged) {
				t.Fatalf("byte %d: a corrupt log was changed", i)
			}
		}
	}
}

func TestLogForeignFrames(t *testing.T) {
	data, offsets := logOf(t, "one", "two")
	other, otherOffsets := logOf(t, "stale", "stale")
	t.Run("stale blocks of another log after the end are a torn tail", func(t *testing.T) {
		mem := newDisk(t)
		putLog(t, mem, append(bytes.Clone(data), other[otherOffsets[0]:]...))
		records, torn, err := durable.ReadLog(mem, logFile)
		must(t, err)
		if len(records) != 2 || torn == 0 {
			t.Fatalf("%d records, torn %d", len(records), torn)
		}
	})
	t.Run("a frame twice is corruption", func(t *testing.T) {
		mem := newDisk(t)
		putLog(t, mem, append(bytes.Clone(data), data[offsets[1]:]...))
		if _, _, err := durable.ReadLog(mem, logFile); !errors.Is(err, durable.ErrCorrupt) {
			t.Fatal(err)
		}
	})
	t.Run("a frame missing is corruption", func(t *testing.T) {
		mem := newDisk(t)
		putLog(t, mem, append(bytes.Clone(data[:offsets[0]]), data[offsets[1]:]...))
		if _, _, err := durable.ReadLog(mem, logFile); !errors.Is(err, durable.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

// TestLogSurvivesPowerLossAtEveryOperation checks that every record for which Append returned nil
// is present, and no other record except the one being written.
func TestLogSurvivesPowerLossAtEveryOperation(t *testing.T) {
	for _, keep := range []float64{0, 0.5, 1} {
		rng := rand.New(rand.NewPCG(7, uint64(keep*10)))
		mem := newDisk(t)
		var acknowledged []string
		writing := ""
		hook := func(op durable.Op) error {
			for range 10 {
				crashed := mem.CrashClone(keep, rng)
				log, records, err := durable.OpenLog(crashed, logFile)
				if err != nil {
					t.Fatalf("keep %v, before operation %d (%s): %v", keep, op.N, op.Kind, err)
				}
				got := texts(records)
				with := append(append([]string{}, acknowledged...), writing)
				if cmp.Diff(with, got) != "" {
					if diff := cmp.Diff(with[:len(acknowledged)], got); diff != "" {
						t.Fatalf("keep %v, before operation %d (%s): %s", keep, op.N, op.Kind, diff)
					}
				}
				// Appending continues from there.
				if err := log.Append([]byte("after")); err != nil {
					t.Fatal(err)
				}
				if records, _, err := durable.ReadLog(crashed.CrashClone(0, nil), logFile); err != nil ||
					len(records) != len(got)+1 {
					t.Fatalf("after recovery: %d records, %v", len(records), err)
				}
			}
			return nil
		}
		fsys := durable.NewFaulty(mem, hook)
		log, _, err := durable.OpenLog(fsys, logFile)
		must(t, err)
		for i := range 12 {
			writing = strings.Repeat(fmt.Sprintf("record %d ", i), 1+i*40) // Up to eight sectors.
			must(t, log.Append([]byte(writing)))
			acknowledged = append(acknowledged, writing)
		}
		writing = ""
	}
}

func TestLogIsPoisonedByAFailure(t *testing.T) {
	for _, kind := range []durable.OpKind{durable.OpWrite, durable.OpSync} {
		mem := newDisk(t)
		fail := false
		fsys := durable.NewFaulty(mem, func(op durable.Op) error {
			if fail && op.Kind == kind {
				return syscall.ENOSPC
			}
			return nil
		})
		log, _, err := durable.OpenLog(fsys, logFile)
		must(t, err)
		must(t, log.Append([]byte("good")))
		fail = true
		if err := log.Append([]byte("bad")); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, durable.ErrPoisoned) {
			t.Fatalf("%s: %v", kind, err)
		}
		fail = false // The disk works again, but the log remains poisoned.
		before := fsys.Operations()
		if err := log.Append([]byte("worse")); !errors.Is(err, durable.ErrPoisoned) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s, then: %v", kind, err)
		}
		if fsys.Operations() != before {
			t.Errorf("%s: a poisoned log wrote to the disk", kind)
		}
		_, records, err := durable.OpenLog(mem, logFile)
		must(t, err)
		if len(records) < 1 || string(records[0]) != "good" || len(records) > 2 {
			t.Errorf("%s: opened again: %q", kind, records)
		}
	}
}

func FuzzLog(f *testing.F) {
	whole, offsets := logOf(f, `{"kind":"intent"}`, "", strings.Repeat("x", 600))
	f.Add(whole)
	f.Add(whole[:offsets[1]+9])
	f.Add(append(bytes.Clone(whole[:offsets[2]]), make([]byte, 100)...))
	f.Add(bytes.Replace(whole, []byte("intent"), []byte("INTENT"), 1))
	f.Add([]byte("lnrlog1\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		mem := newDisk(t)
		putLog(t, mem, data)
		records, torn, err := durable.ReadLog(mem, logFile)
		if err != nil {
			var corrupt *durable.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Offset < 0 || corrupt.Offset > int64(len(data)) {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		if torn < 0 || torn > int64(len(data)) {
			t.Fatalf("torn %d of %d bytes", torn, len(data))
		}
		// The records read are a prefix of the file, so opening truncates exactly the torn part,
		// and appending continues after it.
		log, opened, err := durable.OpenLog(mem, logFile)
		must(t, err)
		if diff := cmp.Diff(texts(records), texts(opened)); diff != "" {
			t.Fatal(diff)
		}
		must(t, log.Append([]byte("more")))
		after, err := mem.ReadFile(logFile)
		must(t, err)
		if keep := len(data) - int(torn); !bytes.Equal(after[:keep], data[:keep]) {
			t.Fatal("records were changed")
		}
		again, torn, err := durable.ReadLog(mem, logFile)
		if err != nil || torn != 0 || len(again) != len(records)+1 {
			t.Fatalf("%d records, torn %d, %v", len(again), torn, err)
		}
	})
}
