package layers

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// host is a copy of a host in memory: "name = content", and "name -> target" for links.
func host(t *testing.T, text string) *hostfs.Tree {
	t.Helper()
	var entries []hostfs.Entry
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, target, ok := strings.Cut(line, " -> "); ok {
			entries = append(entries, hostfs.Entry{Name: name, Target: target})
		} else if name, content, ok := strings.Cut(line, " = "); ok {
			entries = append(entries, hostfs.Entry{Name: name, Content: []byte(strings.ReplaceAll(content, `\n`, "\n"))})
		} else if line != "" {
			entries = append(entries, hostfs.Entry{Name: line, Directory: true})
		}
	}
	tree, err := hostfs.Of(hostfs.NewMemory(entries))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// drives is a server with two SATA drives in a RAID 1 below LVM, and an NVMe drive in a narrow
// slot. The forms of the files are those of Documentation/ABI; the host is made up.
const drives = `
proc/self/mountinfo = 29 1 253:0 / / rw,relatime shared:1 - xfs /dev/mapper/vg-root rw,attr2\n31 29 259:1 / /fast rw - ext4 /dev/nvme0n1p1 rw\n
sys/dev/block/253:0 -> ../../devices/virtual/block/dm-0
sys/devices/virtual/block/dm-0/dev = 253:0
sys/devices/virtual/block/dm-0/dm/name = vg-root
sys/devices/virtual/block/dm-0/dm/uuid = LVM-abcdef
sys/devices/virtual/block/dm-0/queue/read_ahead_kb = 128
sys/devices/virtual/block/dm-0/slaves/md0 -> ../../md0
sys/dev/block/9:0 -> ../../devices/virtual/block/md0
sys/class/block/md0 -> ../../devices/virtual/block/md0
sys/devices/virtual/block/md0/dev = 9:0
sys/devices/virtual/block/md0/md/level = raid1
sys/devices/virtual/block/md0/slaves/sda1 -> ../../../../pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1
sys/devices/virtual/block/md0/slaves/sdb -> ../../../../pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sdb
sys/class/block/sda1 -> ../../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1
sys/dev/block/8:1 -> ../../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1
sys/dev/block/8:0 -> ../../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda
sys/class/block/sdb -> ../../devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sdb
sys/dev/block/8:16 -> ../../devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sdb
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/dev = 8:0
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/queue/rotational = 1
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/queue/scheduler = none [mq-deadline] bfq
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/queue/nr_requests = 64
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/queue/write_cache = write back
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/device/vendor = ATA     
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/device/model = ST2000NM0008-2F3
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/device/ioerr_cnt = 0x1f
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/device/queue_depth = 32
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1/dev = 8:1
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1/partition = 1
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1/start = 2048
sys/devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sdb/dev = 8:16
sys/devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sdb/queue/rotational = 0
sys/class/ata_link/link1/sata_spd = 1.5 Gbps
sys/class/ata_link/link1/hw_sata_spd_limit = 6.0 Gbps
sys/class/ata_link/link2/sata_spd = <unknown>
sys/dev/block/259:1 -> ../../devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1/nvme0n1p1
sys/dev/block/259:0 -> ../../devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1/dev = 259:0
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1/queue/rotational = 0
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1/queue/scheduler = [none] mq-deadline
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1/device -> ../../nvme0
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/model = Samsung SSD 970 EVO 1TB
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/device -> ../../../0000:03:00.0
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/current_link_speed = 8.0 GT/s PCIe
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/current_link_width = 2
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/max_link_speed = 8.0 GT/s PCIe
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/max_link_width = 4
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1/nvme0n1p1/dev = 259:1
sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1/nvme0n1p1/partition = 1
`

// shape draws a stack on one line.
func shape(s Stack) string {
	var names []string
	for _, l := range s.Layers {
		names = append(names, fmt.Sprintf("%s %s", l.Kind, l.Name))
	}
	return strings.Join(names, ", ")
}

func TestFindArray(t *testing.T) {
	s := Find(host(t, drives), Place{At: sys.FileAt{Major: 253, Minor: 0, Mount: 29}})
	if got, want := shape(s),
		"file-system xfs, device-mapper dm-0, raid md0, partition sda1, disk sda, disk sdb"; got != want {
		t.Fatalf("layers %s\nwant   %s; unknown %q", got, want, s.Unknown)
	}
	if got := strings.Join(s.Counted(), " "); got != "9:0" {
		t.Errorf("bytes are counted at %s, want the array: both drives write each byte", got)
	}
	if s.FileSystem != "xfs" || s.Virtual() || s.InMemory() != "" || len(s.Unknown) != 0 {
		t.Errorf("%+v", s)
	}
	sda, sdb := s.Layers[4], s.Layers[5]
	if sda.Medium != HDD || sda.About != "ATA ST2000NM0008-2F3" || sda.Errors != 31 ||
		sda.Queue.Scheduler != "mq-deadline" ||
		sda.Queue.Requests != 64 || sda.Queue.DeviceQueueLength != 32 || sda.Queue.WriteCache != "write back" ||
		sda.Link == nil || sda.Link.BitsPerSecond != 1.5e9 || sda.Link.MaxBitsPerSecond != 6e9 {
		t.Errorf("sda: %+v, queue %+v, link %+v", sda, sda.Queue, sda.Link)
	}
	if sdb.Medium != SSD || sdb.Link != nil {
		t.Errorf("sdb: %+v", sdb)
	}
	if s.Layers[1].About != "LVM vg-root" || s.Layers[2].About != "raid1" || s.Layers[3].About != "from byte 1048576" {
		t.Errorf("%+v", s.Layers[1:4])
	}
}

func TestFindNVMe(t *testing.T) {
	s := Find(host(t, drives), Place{At: sys.FileAt{Major: 259, Minor: 1, Mount: 31}})
	if got, want := shape(s), "file-system ext4, partition nvme0n1p1, disk nvme0n1"; got != want {
		t.Fatalf("layers %s, want %s; unknown %q", got, want, s.Unknown)
	}
	l := s.Layers[2]
	if l.Medium != NVMe || l.Link == nil || l.Link.BitsPerSecond != 16e9 ||
		l.Link.MaxBitsPerSecond != 32e9 || l.Link.Width != 2 {
		t.Errorf("%+v, link %+v", l, l.Link)
	}
}

// TestFindLoopsForever checks that a loop device over a file on itself ends.
func TestFindLoopsForever(t *testing.T) {
	tree := host(t, `
proc/self/mountinfo = 40 1 7:0 / /x rw - ext4 /dev/loop0 rw
sys/dev/block/7:0 -> ../../devices/virtual/block/loop0
sys/devices/virtual/block/loop0/dev = 7:0
sys/devices/virtual/block/loop0/loop/backing_file = /x/file
`)
	at := sys.FileAt{Major: 7, Minor: 0, Mount: 40}
	s := Find(tree, Place{At: at, Open: func(string) (sys.FileAt, error) { return at, nil }})
	if len(s.Layers) > deepest || s.Backing != "/x/file" {
		t.Errorf("%s", shape(s))
	}
}

// TestFindUnknown checks that what cannot be seen is said, and nothing is guessed.
func TestFindUnknown(t *testing.T) {
	hidden := func(string) (sys.FileAt, error) { return sys.FileAt{}, fs.ErrPermission }
	for text, c := range map[string]struct {
		at   sys.FileAt
		want string
	}{
		"proc/version = x": {sys.FileAt{Major: 8, Minor: 1}, "mounts: "},
		"proc/self/mountinfo = 5 1 0:50 / / rw - overlay overlay rw,upperdir=/host/up": {sys.FileAt{Minor: 50, Mount: 5},
			"below the overlay: permission denied"},
		"proc/self/mountinfo = 5 1 0:50 / / rw - zfs tank/root rw": {sys.FileAt{Minor: 50, Mount: 5},
			`"tank/root" is no device`},
		"proc/self/mountinfo = 5 1 8:1 / / rw - ext4 /dev/sda1 rw": {sys.FileAt{Major: 8, Minor: 1},
			"/sys/dev/block/8:1 is not there"},
		"proc/self/mountinfo = 5 1 0:9 / / rw - btrfs /dev/sdx rw": {sys.FileAt{Minor: 9, Mount: 5},
			"/sys/class/block does not have it"},
		"proc/self/mountinfo = 5 1 0:9 / / rw - overlay overlay rw": {sys.FileAt{Minor: 9, Mount: 5},
			"its options name no directory"},
		"proc/self/mountinfo = 5 1 0:9 / / rw - tmpfs tmpfs rw": {sys.FileAt{Minor: 10, Mount: 6},
			"no mount of device 0:10"},
		"proc/self/mountinfo = what is this": {sys.FileAt{Minor: 10, Mount: 6}, "mounts: "},
	} {
		s := Find(host(t, text), Place{At: c.at, Open: hidden})
		if !strings.Contains(strings.Join(s.Unknown, "\n"), c.want) || len(s.Disks()) != 0 {
			t.Errorf("%s: unknown %q, layers %s; want %q", text, s.Unknown, shape(s), c.want)
		}
	}
}

// TestLimits reads the limits of both versions of control groups, those of groups above included.
func TestLimits(t *testing.T) {
	v2 := host(t, `
proc/self/mountinfo = 30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
proc/self/cgroup = 0::/user.slice/test.scope
sys/fs/cgroup/user.slice/io.max = 8:16 rbps=50000000 wbps=max riops=max wiops=max
sys/fs/cgroup/user.slice/test.scope/io.max = 8:0 rbps=1 wbps=1 riops=1 wiops=1\n8:16 rbps=90000000 wbps=max riops=1200 wiops=max
`)
	if l := LimitOf(v2, []string{"8:16"}, false); l == nil || l.BytesPerSec != 5e7 || l.OperationsPerSec != 1200 {
		t.Errorf("version 2, reads: %+v", l)
	}
	if l := LimitOf(v2, []string{"8:16"}, true); l != nil {
		t.Errorf("version 2, writes: %+v, want none", l)
	}
	// Inside a container, whose mount begins at its own group.
	v1 := host(t, `
proc/self/mountinfo = 33 1 0:29 /docker/abc /sys/fs/cgroup/blkio ro - cgroup cgroup rw,blkio
proc/self/cgroup = 8:memory:/docker/abc\n5:blkio:/docker/abc/inner\n0::/
sys/fs/cgroup/blkio/inner/blkio.throttle.write_bps_device = 254:0 1048576\n
sys/fs/cgroup/blkio/blkio.throttle.write_iops_device = 254:0 100\n
`)
	if l := LimitOf(v1, []string{"254:0"}, true); l == nil || l.BytesPerSec != 1<<20 || l.OperationsPerSec != 100 {
		t.Errorf("version 1, writes: %+v", l)
	}
	if l := LimitOf(v1, []string{"254:0"}, false); l != nil {
		t.Errorf("version 1, reads: %+v, want none", l)
	}
	if l := LimitOf(host(t, "proc/version = x"), []string{"8:0"}, false); l != nil {
		t.Errorf("no control groups: %+v", l)
	}
}
