package storage

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/storage/layers"
)

// Whose names what a figure measured.
type Whose string

// The answers. Only Device permits the name "disk".
const (
	Device       Whose = "device"
	PageCache    Whose = "page-cache"         // this kernel's
	Memory       Whose = "memory"             // a file system or a disk in memory: tmpfs, ramfs, zram
	Holes        Whose = "holes"              // parts of the file that were never written
	Unwritten    Whose = "unwritten-extents"  // allocated, and read as zeros without the device
	Compression  Whose = "compression"        // the file system moved fewer bytes
	BackingCache Whose = "backing-file-cache" // the page cache of the file behind a loop device
	ReadAhead    Whose = "read-ahead"         // the kernel read more than the test
	ControlGroup Whose = "control-group"      // a limit of this process's control group
	DeviceCache  Whose = "device-cache"       // faster than the medium: a controller's or drive's cache
	Network      Whose = "network"            // another host keeps the file
	Unknown      Whose = "unknown"            // the evidence is not readable
)

// Verdict says whose figure a result is.
type Verdict struct {
	Whose Whose `json:"whose"`
	// LatencyWhose differs from Whose where operations end before the device has answered: in pages
	// that the kernel read ahead.
	LatencyWhose Whose    `json:"latency_whose"`
	Because      []string `json:"because"` // the evidence, a sentence each
	// DeviceRatio is the test's bytes at the device over its bytes at the file; absent: unknown.
	DeviceRatio *float64 `json:"device_bytes_ratio,omitempty"`
	// ResidentRatio is the share of the file in this kernel's memory after the test, and
	// ResidentBefore that before it; absent: unknown.
	ResidentRatio  *float64 `json:"resident_ratio,omitempty"`
	ResidentBefore *float64 `json:"resident_before_ratio,omitempty"`
	// OthersRatio is what other programs moved at the device, over the bytes at the file.
	OthersRatio float64 `json:"others_bytes_ratio,omitempty"`
}

// Evidence is everything that a verdict rests on. Negative numbers are not known.
type Evidence struct {
	Spec       Spec // normalized, with the way and engine that ran
	Stack      layers.Stack
	FileBytes  int64 // moved by the test's operations
	OwnBytes   int64 // that this process caused at the storage layer
	Bottom     int64 // at the devices of Stack.Counted, for all programs
	BottomName string

	ResidentBefore, ResidentAfter float64 // shares of the file
	BackingBefore                 float64 // share of the file behind a loop device in memory

	HoleRatio, UnwrittenRatio, EncodedRatio float64 // shares of the used part of the file

	Limit *layers.Limit // of the control group for this device

	OperationsPerSec, BytesPerSec float64
	P50Seconds                    float64
	Errors                        uint64
}

// tolerance is how far bytes at the device may differ from those at the file.
const tolerance = 0.05

// Judge says whose figure a result is, from its evidence alone. Each step asks for what would make
// the figure another's; the first that applies names it.
func Judge(e Evidence) Verdict {
	v := Verdict{ResidentRatio: share(e.ResidentAfter), ResidentBefore: share(e.ResidentBefore)}
	v.Whose = e.whose(&v)
	v.LatencyWhose = v.Whose
	if v.Whose == Device && e.Spec.Way != Direct && !e.Spec.Test.Writes() && !e.Spec.Test.Random() {
		v.LatencyWhose = ReadAhead
		v.because("The kernel reads ahead of buffered sequential reads: their latency is that of copying from memory.")
	}
	if v.Whose == Device && e.Stack.Virtual() {
		v.because("%s is a virtual disk: its host may answer from its own memory, and this host cannot see that cache.",
			e.BottomName)
	}
	return v
}

//go:noinline // 23 copies took 5 kB
func (v *Verdict) because(format string, args ...any) {
	v.Because = append(v.Because, fmt.Sprintf(format, args...))
}

// share returns a pointer to a known share.
func share(x float64) *float64 {
	if x < 0 {
		return nil
	}
	return &x
}

func (e Evidence) whose(v *Verdict) Whose {
	if name := e.Stack.InMemory(); name != "" {
		v.because("%s keeps the file in memory.", name)
		return Memory
	}
	if e.Stack.OverNetwork() {
		v.because("The file system is %s: another host keeps the file, and its cache and the network answer too.",
			e.Stack.FileSystem)
		return Network
	}
	if e.FileBytes == 0 {
		v.because("No operation has completed.")
		return Unknown
	}
	moved := e.moved()
	if moved >= 0 {
		ratio := float64(moved) / float64(e.FileBytes)
		v.DeviceRatio = &ratio
		if e.Bottom > moved {
			v.OthersRatio = float64(e.Bottom-moved) / float64(e.FileBytes)
		}
	}
	verb := "read"
	if e.Spec.Test.Writes() {
		verb = "written"
	}
	switch {
	case v.DeviceRatio == nil:
		v.because("The bytes at the device are not known%s.", because(e.Stack.Unknown))
		return Unknown
	case *v.DeviceRatio < 1-tolerance:
		v.because("%s %s at the file, %s at the device.", unit.Bytes(e.FileBytes), verb, unit.Bytes(moved))
		return e.tooFew(v)
	case float64(moved-e.ahead()) > (1+tolerance)*float64(e.FileBytes) && !e.Spec.Test.Writes():
		v.because("%s read at the file, %s at the device: the kernel reads more than the test asked for.",
			unit.Bytes(e.FileBytes), unit.Bytes(moved))
		return ReadAhead
	case *v.DeviceRatio > 1+tolerance && !e.Spec.Test.Writes():
		v.because("%s read at the file, %s at %s: the rest was read ahead for operations after the end.",
			unit.Bytes(e.FileBytes), unit.Bytes(moved), e.BottomName)
	case *v.DeviceRatio > 1+tolerance:
		v.because("%s written at the file, %s at the device: the file system writes its journal and metadata too.",
			unit.Bytes(e.FileBytes), unit.Bytes(moved))
	default:
		v.because("%s %s at the file, %s at %s.", unit.Bytes(e.FileBytes), verb, unit.Bytes(moved), e.BottomName)
	}
	if e.Stack.Backing != "" && !e.Stack.BackingDirect && !e.Spec.Test.Writes() && e.BackingBefore > tolerance {
		v.because("%s of the file behind the loop device was in memory: %s.", unit.FormatPercent(e.BackingBefore),
			e.Stack.Backing)
		return BackingCache
	}
	// A short test reads each compressed part once: as many bytes as it asked for, by chance.
	if e.EncodedRatio > tolerance && !e.Spec.Test.Writes() {
		v.because("The file system has compressed %s of the file.", unit.FormatPercent(e.EncodedRatio))
		return Compression
	}
	if whose, yes := e.limited(v); yes {
		return whose
	}
	return e.plausible(v)
}

// moved returns the test's bytes at the device: what all programs moved there, but not more than
// this process caused; negative when unknown.
//
// Below a loop device a thread of the kernel reads, so this process's own count is that of the loop
// device alone; the bottom has the smaller number when the backing file is cached.
func (e Evidence) moved() int64 {
	switch {
	case e.Bottom < 0:
		return -1
	case e.OwnBytes < 0:
		return e.Bottom
	}
	return min(e.Bottom, e.OwnBytes)
}

// ahead returns the bytes that the kernel may have read for operations that the end of the test
// prevented: two windows of read-ahead of a buffered sequential read. A window is as large as the
// operation where that is more than the queue's read-ahead (ractl_max_pages, mm/readahead.c).
func (e Evidence) ahead() int64 {
	if e.Spec.Way == Direct || e.Spec.Test.Random() {
		return 0
	}
	for _, l := range e.Stack.Layers {
		if l.Queue != nil {
			return 2 * max(l.Queue.ReadAheadBytes, int64(e.Spec.BlockBytes))
		}
	}
	return 0
}

func because(unknown []string) string {
	if len(unknown) == 0 {
		return ""
	}
	return " (" + unknown[0] + ")"
}

// tooFew names what answered in place of the device.
func (e Evidence) tooFew(v *Verdict) Whose {
	switch {
	case !e.Spec.Test.Writes() && e.HoleRatio > tolerance:
		v.because("%s of the file are holes: reads return zeros without the device.", unit.FormatPercent(e.HoleRatio))
		return Holes
	case !e.Spec.Test.Writes() && e.UnwrittenRatio > tolerance:
		v.because("%s of the file were allocated and never written: reads return zeros without the device.",
			unit.FormatPercent(e.UnwrittenRatio))
		return Unwritten
	case e.EncodedRatio > tolerance:
		v.because("The file system has compressed %s of the file.", unit.FormatPercent(e.EncodedRatio))
		return Compression
	case e.Stack.Backing != "" && e.OwnBytes >= int64((1-tolerance)*float64(e.FileBytes)):
		v.because("The bytes arrived at the loop device and not below it: the cache of %s answered.", e.Stack.Backing)
		return BackingCache
	case e.Spec.Test.Writes():
		v.because("The kernel has not written the rest yet, or it was overwritten in memory.")
		return PageCache
	case e.ResidentAfter > tolerance || e.ResidentBefore > tolerance:
		v.because("%s of the file are in memory.", unit.FormatPercent(max(e.ResidentAfter, e.ResidentBefore)))
		return PageCache
	case e.Spec.Way != Direct:
		v.because("The reads were buffered.")
		return PageCache
	}
	v.because("Nothing that is visible here explains the difference.")
	return Unknown
}

// limited reports whether a limit of the control group is what was measured.
func (e Evidence) limited(v *Verdict) (Whose, bool) {
	l := e.Limit
	if l == nil {
		return "", false
	}
	// The kernel lets through what a limit allows in slices of a tenth of a second, and the last
	// operation of a test waits beyond its end: a test of a second reached 0.81 of its limit.
	near := func(x, limit float64) bool { return limit > 0 && x > 0.7*limit }
	switch {
	case near(e.BytesPerSec, l.BytesPerSec):
		v.because("%s of %s limits this process to %s/s.", l.Source, l.Group, unit.Bytes(l.BytesPerSec))
	case near(e.OperationsPerSec, l.OperationsPerSec):
		v.because("%s of %s limits this process to %s operations/s.", l.Source, l.Group,
			unit.FormatCount(l.OperationsPerSec))
	default:
		return "", false
	}
	return ControlGroup, true
}

// floors are the shortest plausible median latencies of single small operations, in seconds.
// A disk of 15 000/min needs 2 ms for half a turn; with many requests in flight its queue sorts
// them, and a fifth of that is still more than any cache takes. Flash needs 25 µs for the fastest
// pages, of which a SATA or NVMe controller hides none for random reads of a large file.
var floors = map[layers.Medium]float64{
	layers.HDD:   400e-6,
	layers.SSD:   15e-6,
	layers.NVMe:  5e-6,
	layers.Flash: 50e-6,
}

// plausible names a cache that lies below this kernel when operations end sooner than the medium
// can. Sequential ones say nothing: every drive reads ahead into its own buffer.
func (e Evidence) plausible(v *Verdict) Whose {
	if !e.Spec.Test.Random() || e.P50Seconds <= 0 {
		return Device
	}
	for _, disk := range e.Stack.Disks() {
		floor, ok := floors[disk.Medium]
		switch {
		case ok && e.P50Seconds < floor && !(e.Spec.Test.Writes() && disk.Medium != layers.HDD):
			v.because("Half of the operations ended within %s; %s (%s) needs at least %s: a cache of the drive or "+
				"controller answered.", unit.FormatSeconds(e.P50Seconds), disk.Name, disk.Medium, unit.FormatSeconds(floor))
			return DeviceCache
		}
	}
	return Device
}
