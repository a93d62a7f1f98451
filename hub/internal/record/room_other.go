//go:build !linux

package record

import (
	"math"
	"os"
)

// freeBytes is not known here: writing fails when the disk is full, which is met as well.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }

func allocate(f *os.File, bytes int64) error { return f.Truncate(bytes) }
