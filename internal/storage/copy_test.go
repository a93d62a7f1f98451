package storage_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/storage"
)

// TestNewCopy: the slower of disk and network holds a copy, and a cache is named as such.
func TestNewCopy(t *testing.T) {
	for _, c := range []struct {
		network, disk float64
		whose         storage.Whose
		holds, says   string
	}{
		{1e9, 50e6, storage.Device, storage.HeldByDisk, "The network carries 2.5 times as much."},
		{1e9, 500e6, storage.Device, storage.HeldByNetwork, "The disk does 4 times as much."},
		{1e9, 130e6, storage.Device, storage.HeldByBoth, "They are alike"},
		{1e9, 5e9, storage.PageCache, storage.HeldByNetwork,
			"40.0 Gb/s (page-cache, not a disk's figure); the network: 1.00 Gb/s. The storage does 40 times as much."},
		{0, 5e9, storage.Device, storage.HeldByBoth, "the network: 0"},
	} {
		got := storage.NewCopy("/srv", c.network, &storage.Result{Test: storage.SequentialRead, ThroughputBytesPerSec: c.disk,
			Verdict: storage.Verdict{Whose: c.whose}})
		if got.Holds != c.holds || !strings.Contains(got.Because, c.says) {
			t.Errorf("%v and %v: %+v", c.network, c.disk, got)
		}
	}
}
