package procfs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sectorBytes is the unit of /proc/diskstats for every device, whatever its own block size
// (include/linux/blk_types.h SECTOR_SIZE).
const sectorBytes = 512

// DiskStat is one line of /proc/diskstats: a block device since boot.
type DiskStat struct {
	Major, Minor          uint32
	Name                  string
	Reads, Writes         uint64
	ReadBytes, WriteBytes uint64
	ReadTime, WriteTime   time.Duration // summed over the requests
	InFlight              uint64
	Busy                  time.Duration // some request was in flight
	Flushes               uint64        // since Linux 5.5; 0 before
}

// ParseDiskStats reads /proc/diskstats (diskstats_show in block/genhd.c). Lines grew from 14 to 18
// to 20 fields; a line with fewer than 14 (partitions before Linux 2.6.25) is an [ErrFormat].
func ParseDiskStats(b []byte) ([]DiskStat, error) {
	var all []DiskStat
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 14 {
			return all, fmt.Errorf("%d fields: %w", len(f), ErrFormat)
		}
		var n [20]uint64
		for i := range min(len(f), len(n)) {
			if i == 2 {
				continue
			}
			v, err := strconv.ParseUint(f[i], 10, 64)
			if err != nil {
				return all, fmt.Errorf("%.20q is not a number: %w", f[i], ErrFormat)
			}
			n[i] = v
		}
		if n[0] > 1<<32-1 || n[1] > 1<<32-1 {
			return all, fmt.Errorf("device %d:%d: %w", n[0], n[1], ErrFormat)
		}
		ms := func(v uint64) time.Duration { return time.Duration(min(v, 1<<43)) * time.Millisecond }
		all = append(all, DiskStat{Major: uint32(n[0]), Minor: uint32(n[1]), Name: f[2], Reads: n[3],
			ReadBytes: n[5] * sectorBytes, ReadTime: ms(n[6]), Writes: n[7], WriteBytes: n[9] * sectorBytes,
			WriteTime: ms(n[10]), InFlight: n[11], Busy: ms(n[12]), Flushes: n[18]})
	}
	return all, nil
}

// MountInfo is one line of /proc/PID/mountinfo.
type MountInfo struct {
	ID           uint64
	Major, Minor uint32
	Root, Path   string // the part of the file system that is mounted, and where
	Type, Source string
	Options      string // of the file system: "rw,lowerdir=…"
}

// ParseMountInfo reads /proc/PID/mountinfo (proc_pid_mountinfo(5), show_mountinfo in
// fs/proc_namespace.c). Optional fields end with a dash, after which type, source and options come.
func ParseMountInfo(b []byte) ([]MountInfo, error) {
	var all []MountInfo
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		dash := 6
		for dash < len(f) && f[dash] != "-" {
			dash++
		}
		// A source may be empty, which leaves two fields after the dash.
		if dash+2 >= len(f) {
			return all, fmt.Errorf("%d fields: %w", len(f), ErrFormat)
		}
		id, err := strconv.ParseUint(f[0], 10, 64)
		if err != nil {
			return all, fmt.Errorf("%.20q is not a number: %w", f[0], ErrFormat)
		}
		major, minor, ok := ParseDevice(f[2])
		if !ok {
			return all, fmt.Errorf("%.20q is no device: %w", f[2], ErrFormat)
		}
		m := MountInfo{ID: id, Major: major, Minor: minor, Root: unescape(f[3]), Path: unescape(f[4]), Type: f[dash+1],
			Options: unescape(f[len(f)-1])}
		if dash+3 < len(f) {
			m.Source = unescape(f[dash+2])
		}
		all = append(all, m)
	}
	return all, nil
}

// ParseDevice reads MAJOR:MINOR.
func ParseDevice(text string) (major, minor uint32, ok bool) {
	a, b, cut := strings.Cut(strings.TrimSpace(text), ":")
	x, errX := strconv.ParseUint(a, 10, 32)
	y, errY := strconv.ParseUint(b, 10, 32)
	return uint32(x), uint32(y), cut && errX == nil && errY == nil
}

// ParseIO reads what a process has caused the storage layer to read and write, in bytes, of
// /proc/PID/io (proc_pid_io(5)): pages that came from the cache are not in it. Kernels without
// CONFIG_TASK_IO_ACCOUNTING have no such file.
func ParseIO(b []byte) (read, written uint64, err error) {
	found := 0
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		var into *uint64
		switch name {
		case "read_bytes":
			into = &read
		case "write_bytes":
			into = &written
		default:
			continue
		}
		if *into, err = strconv.ParseUint(strings.TrimSpace(value), 10, 64); err != nil {
			return 0, 0, fmt.Errorf("%s %.20q: %w", name, value, ErrFormat)
		}
		found++
	}
	if found != 2 {
		return 0, 0, fmt.Errorf("no read_bytes and write_bytes: %w", ErrFormat)
	}
	return read, written, nil
}
