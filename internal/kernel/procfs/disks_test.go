package procfs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// The lines of /proc/diskstats of Linux 6.18 on a virtual machine, of 4.18 (18 fields) and of
// 2.6.32 (14 fields).
const diskstats = `   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 208066 38310 8996338 138715 87743 164594 18268512 68848 0 51660 212697 34646 61 9828360 3604 13518 1529
   8       0 sda 7904 1235 476218 3012 17 3 160 41 2 3050 3050 0 0 0 0
   8      16 sdb 100 0 800 12 0 0 0 0 0 12 12
`

func TestParseDiskStats(t *testing.T) {
	all, err := procfs.ParseDiskStats([]byte(diskstats))
	if err != nil || len(all) != 4 {
		t.Fatalf("%d devices, %v", len(all), err)
	}
	vda := procfs.DiskStat{Major: 254, Name: "vda", Reads: 208066, ReadBytes: 8996338 * 512,
		ReadTime: 138715 * time.Millisecond, Writes: 87743, WriteBytes: 18268512 * 512,
		WriteTime: 68848 * time.Millisecond, Busy: 51660 * time.Millisecond, Flushes: 13518}
	if all[1] != vda {
		t.Errorf("%+v, want %+v", all[1], vda)
	}
	if all[2].InFlight != 2 || all[3].Minor != 16 || all[3].ReadBytes != 800*512 {
		t.Errorf("%+v, %+v", all[2], all[3])
	}
	for _, bad := range []string{"8 0 sda 1 2 3 4\n", "8 0 sda 1 2 x 4 5 6 7 8 9 10 11\n",
		"99999999999 0 sda 1 2 3 4 5 6 7 8 9 10 11\n"} {
		if _, err := procfs.ParseDiskStats([]byte(bad)); !errors.Is(err, procfs.ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestParseMountInfo has the line of proc_pid_mountinfo(5), one with a blank in its path, and one
// without a source.
func TestParseMountInfo(t *testing.T) {
	const text = `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
40 35 0:21 / /mnt/a\040b rw shared:2 master:3 - tmpfs tmpfs rw,size=1024k
41 35 0:22 / /x rw - fuse  rw
`
	all, err := procfs.ParseMountInfo([]byte(text))
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	want := procfs.MountInfo{ID: 36, Major: 98, Root: "/mnt1", Path: "/mnt2", Type: "ext3", Source: "/dev/root",
		Options: "rw,errors=continue"}
	if all[0] != want || all[1].Path != "/mnt/a b" || all[2].Source != "" || all[2].Type != "fuse" {
		t.Errorf("%+v", all)
	}
	for _, bad := range []string{"36 35 98:0 / /m rw\n", "x 35 98:0 / /m rw - ext3 a b\n", "1 2 9 / /m rw - ext3 a b\n"} {
		if _, err := procfs.ParseMountInfo([]byte(bad)); !errors.Is(err, procfs.ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseIO(t *testing.T) {
	read, written, err := procfs.ParseIO([]byte("rchar: 6976\nwchar: 0\nread_bytes: 4096\nwrite_bytes: 512\n" +
		"cancelled_write_bytes: 0\n"))
	if err != nil || read != 4096 || written != 512 {
		t.Errorf("%d, %d, %v", read, written, err)
	}
	for _, bad := range []string{"", "read_bytes: 1\n", "read_bytes: x\nwrite_bytes: 1\n"} {
		if _, _, err := procfs.ParseIO([]byte(bad)); !errors.Is(err, procfs.ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// FuzzDisks: every parser ends, whatever the bytes.
func FuzzDisks(f *testing.F) {
	f.Add([]byte(diskstats))
	f.Add([]byte("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n"))
	f.Add([]byte("read_bytes: 1\nwrite_bytes: 2\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = procfs.ParseDiskStats(b)
		_, _ = procfs.ParseMountInfo(b)
		_, _, _ = procfs.ParseIO(b)
	})
}
