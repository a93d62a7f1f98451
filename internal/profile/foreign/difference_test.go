package foreign_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"

	"github.com/linerate/linerate/internal/profile/foreign"
)

// message encodes fields of a protocol buffer: a number is a varint, a text or bytes a length and
// what follows (pprof's profile.proto has the numbers).
func message(fields ...any) []byte {
	var b []byte
	for i := 0; i < len(fields); i += 2 {
		number := uint64(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			b = binary.AppendUvarint(binary.AppendUvarint(b, number<<3), uint64(v))
		case string:
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, number<<3|2), uint64(len(v))), v...)
		case []byte:
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, number<<3|2), uint64(len(v))), v...)
		}
	}
	return b
}

// TestDifferenceOfProfiles reads a difference as `go tool pprof -diff_base` writes it: samples of
// which the time alone is negative are left out, and do not become thousands of years.
func TestDifferenceOfProfiles(t *testing.T) {
	whole := message(1, message(1, 1, 2, 2), 1, message(1, 3, 2, 4), 6, "", 6, "samples", 6, "count", 6, "cpu",
		6, "nanoseconds", 6, "near", 6, "far", 5, message(1, 1, 2, 5), 5, message(1, 2, 2, 6),
		4, message(1, 1, 4, message(1, 1)), 4, message(1, 2, 4, message(1, 2)),
		2, message(1, 1, 2, 10, 2, 100_000_000), 2, message(1, 2, 2, 0, 2, -10_000_000))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(whole); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := foreign.Read(&b, "difference")
	if err != nil {
		t.Fatal(err)
	}
	if p.Samples != 10 || p.BusySeconds < 0.09 || p.BusySeconds > 0.11 {
		t.Errorf("%d samples, %v s, want 10 and 0.1 s", p.Samples, p.BusySeconds)
	}
}
