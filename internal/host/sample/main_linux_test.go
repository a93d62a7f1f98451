package sample_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// LINERATE_SAMPLE=60 turns the test binary into a program that samples the host once each second
// for 60 seconds, and prints what that cost:
//
//	go test -c -o /tmp/sampler ./internal/host/sample && LINERATE_SAMPLE=60 /tmp/sampler
func TestMain(m *testing.M) {
	if seconds, err := strconv.Atoi(os.Getenv("LINERATE_SAMPLE")); err == nil {
		if err := everySecond(seconds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	guesttest.Main(m)
}

func everySecond(seconds int) error {
	s, err := sample.New(sample.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	points, aligned, warnings := 0, 0, 0
	next := time.Now().Truncate(time.Second)
	for range seconds {
		next = next.Add(time.Second)
		time.Sleep(time.Until(next))
		r, err := s.Read(next)
		if err != nil {
			return err
		}
		points = len(r.Points)
		warnings += len(r.Warnings)
		if r.Time.Equal(next) {
			aligned++
		}
	}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	fmt.Printf("%d readings of %d series, %d under their tick, %d warnings: "+
		"%.3f s of processor time (%.3f user, %.3f system), %.1f MB at most in memory, "+
		"%d kB of garbage a reading, %d collections\n",
		seconds, points, aligned, warnings, cpu.Seconds(), time.Duration(used.Utime.Nano()).Seconds(),
		time.Duration(used.Stime.Nano()).Seconds(),
		float64(used.Maxrss)/1024, memory.TotalAlloc/1024/uint64(seconds), memory.NumGC)
	return nil
}
