package sys

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBurst: reads end with the offsets, with the time, with a short read and with an error.
func TestBurst(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content := make([]byte, BurstOps*512)
	for i := range content {
		content[i] = byte(i / 512 % 251)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	var b Burst
	var stop atomic.Bool
	for i := range b.Offsets {
		b.Offsets[i] = int64(i) * 512
	}
	p := make([]byte, 512)
	fd := int(f.Fd())
	if failed, err := b.Read(fd, p, Monotonic()+time.Hour, &stop); failed || err != nil || b.Done != BurstOps ||
		p[0] != (BurstOps-1)%251 || p[511] != p[0] {
		t.Errorf("all: %v, %v, %d done, %d", failed, err, b.Done, p[0])
	}
	for i, took := range b.Took {
		if took <= 0 {
			t.Errorf("read %d took %d ns", i, took)
		}
	}
	if failed, err := b.Read(fd, p, Monotonic(), &stop); failed || err != nil || b.Done != 0 {
		t.Errorf("no time: %v, %v, %d done", failed, err, b.Done)
	}
	stop.Store(true)
	if failed, err := b.Read(fd, p, Monotonic()+time.Hour, &stop); failed || err != nil || b.Done != 0 {
		t.Errorf("stopped: %v, %v, %d done", failed, err, b.Done)
	}
	stop.Store(false)
	b.Offsets[3] = int64(len(content)) - 100
	if failed, err := b.Read(fd, p, Monotonic()+time.Hour, &stop); !failed || err != nil || b.Done != 3 || b.Got != 100 {
		t.Errorf("short: %v, %v, %d done, %d bytes", failed, err, b.Done, b.Got)
	}
	b.Offsets[1] = -1
	if failed, err := b.Read(fd, p, Monotonic()+time.Hour, &stop); !failed || err != unix.EINVAL || b.Done != 1 {
		t.Errorf("wrong: %v, %v, %d done", failed, err, b.Done)
	}
}
