package layers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Kind is what a layer does.
type Kind string

// The kinds, from the file downwards.
const (
	FileSystem   Kind = "file-system"
	Overlay      Kind = "overlay"
	Partition    Kind = "partition"
	Loop         Kind = "loop"
	DeviceMapper Kind = "device-mapper"
	RAID         Kind = "raid"
	Disk         Kind = "disk"
)

// Layer is one step between a file and its medium.
type Layer struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"`             // ext4, vda1, dm-0, sda
	Device string `json:"device,omitempty"` // MAJOR:MINOR
	About  string `json:"about,omitempty"`  // mount options, LVM name, RAID level, model
	Source string `json:"source"`           // the file that shows it
	Queue  *Queue `json:"queue,omitempty"`
	Medium Medium `json:"medium,omitempty"`
	Link   *Link  `json:"link,omitempty"`
	Errors uint64 `json:"errors_total,omitempty"` // as the layer counts them
}

// Queue is how the kernel passes requests to a device.
type Queue struct {
	Scheduler         string   `json:"scheduler,omitempty"`
	Schedulers        []string `json:"schedulers,omitempty"` // the device's choice
	Requests          int64    `json:"requests,omitempty"`   // nr_requests
	ReadAheadBytes    int64    `json:"read_ahead_bytes"`
	WriteCache        string   `json:"write_cache,omitempty"` // write back, write through
	RequestAffinity   int64    `json:"request_affinity"`      // rq_affinity
	WriteLimitMicros  int64    `json:"write_latency_limit_microseconds,omitempty"`
	LogicalBytes      int64    `json:"logical_block_bytes,omitempty"`
	PhysicalBytes     int64    `json:"physical_block_bytes,omitempty"`
	LargestBytes      int64    `json:"largest_request_bytes,omitempty"`
	HardwareQueues    int      `json:"hardware_queues,omitempty"`
	Rotational        bool     `json:"rotational"`
	DeviceQueueLength int64    `json:"device_queue_length,omitempty"` // SCSI queue_depth
}

// Medium is what keeps the bytes.
type Medium string

// The media. Virtual is a disk that another program provides: its medium and its caches are
// unknown.
const (
	HDD           Medium = "hdd"
	SSD           Medium = "ssd"
	NVMe          Medium = "nvme"
	Flash         Medium = "flash" // SD cards and eMMC
	Virtual       Medium = "virtual"
	Memory        Medium = "memory" // zram, ram disks
	UnknownMedium Medium = "unknown"
)

// Link is the connection between the host and a disk.
type Link struct {
	Kind             string  `json:"kind"` // sata, pcie
	BitsPerSecond    float64 `json:"bits_per_second"`
	MaxBitsPerSecond float64 `json:"max_bits_per_second,omitempty"` // both ends can do; absent: unknown
	Width            int     `json:"width,omitempty"`
	MaxWidth         int     `json:"max_width,omitempty"`
	Source           string  `json:"source"`
}

// Stack is the layers of one file, from the file downwards.
type Stack struct {
	Layers  []Layer  `json:"layers"`
	Unknown []string `json:"unknown,omitempty"` // layers that could not be named, and why

	// FileSystem is the type of the file's own mount; empty: a block device, or not visible.
	FileSystem string `json:"file_system,omitempty"`
	Options    string `json:"options,omitempty"`
	// Backing is the file behind a loop device of the stack.
	Backing string `json:"backing_file,omitempty"`
	// BackingDirect reports that the loop device goes past the cache of that file.
	BackingDirect bool `json:"backing_direct,omitempty"`
}

// memoryFileSystems keep files in memory, networkFileSystems at another host.
var (
	memoryFileSystems  = []string{"tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs"}
	networkFileSystems = []string{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "glusterfs",
		"fuse.sshfs", "fuse.glusterfs", "lustre"}
)

// InMemory returns the file system or the disk of the stack that keeps its bytes in memory: the
// file's own, or one behind a loop device; empty: none.
func (s Stack) InMemory() string {
	for _, l := range s.Layers {
		if l.Kind == FileSystem && slices.Contains(memoryFileSystems, l.Name) || l.Medium == Memory {
			return l.Name
		}
	}
	return ""
}

// OverNetwork reports whether another host keeps the file.
func (s Stack) OverNetwork() bool { return slices.Contains(networkFileSystems, s.FileSystem) }

// Disks returns the disks at the bottom.
func (s Stack) Disks() []Layer {
	return slices.DeleteFunc(slices.Clone(s.Layers), func(l Layer) bool { return l.Kind != Disk })
}

// Virtual reports whether another program provides a disk of the stack.
func (s Stack) Virtual() bool {
	return slices.ContainsFunc(s.Layers, func(l Layer) bool { return l.Medium == Virtual })
}

// Counted returns the devices at which one byte of the file is counted once: the disks, or the
// arrays above them, which write mirrors and parity too.
func (s Stack) Counted() []string {
	var arrays, disks []string
	for _, l := range s.Layers {
		switch l.Kind {
		case RAID:
			arrays = append(arrays, l.Device)
		case Disk:
			disks = append(disks, l.Device)
		}
	}
	if len(arrays) > 0 {
		return arrays
	}
	return disks
}

// Place is where a file is, for [Find].
type Place struct {
	At sys.FileAt
	// Device reports whether the file is a block device itself.
	Device bool
	// Open returns the place of another file of the host: the file behind a loop device, the upper
	// directory of an overlay. Nil: a copy of a host, which has no files.
	Open func(path string) (sys.FileAt, error)
}

// deepest bounds the walk: a loop device over a file on a loop device, and so on.
const deepest = 32

// finder walks down.
type finder struct {
	tree   *hostfs.Tree
	place  Place
	mounts []procfs.MountInfo
	stack  Stack
	seen   map[string]bool
	steps  int
}

// Find names the layers below a file. It never fails: what cannot be read is in Stack.Unknown.
func Find(tree *hostfs.Tree, p Place) Stack {
	f := &finder{tree: tree, place: p, seen: make(map[string]bool)}
	b, err := tree.Read("proc/self/mountinfo")
	if err == nil {
		f.mounts, err = procfs.ParseMountInfo(b)
	}
	if err != nil {
		f.unknown("mounts", err)
	}
	if p.Device {
		f.device(p.At.Major, p.At.Minor)
	} else {
		f.file(p.At, true)
	}
	if f.stack.Layers == nil {
		f.stack.Layers = []Layer{}
	}
	return f.stack
}

func (f *finder) unknown(what string, err error) {
	f.stack.Unknown = append(f.stack.Unknown, fmt.Sprintf("%s: %v", what, err))
}

// mount returns the mount of a file: by its number, or for older kernels by its device.
func (f *finder) mount(at sys.FileAt) (procfs.MountInfo, bool) {
	for _, m := range f.mounts {
		if at.Mount != 0 && m.ID == at.Mount {
			return m, true
		}
	}
	for _, m := range f.mounts {
		if m.Major == at.Major && m.Minor == at.Minor {
			return m, true
		}
	}
	return procfs.MountInfo{}, false
}

// file adds the file system of a file and what is below it. Own is the file asked about, and not
// one behind a loop device.
func (f *finder) file(at sys.FileAt, own bool) {
	if f.steps++; f.steps > deepest {
		f.unknown("layers", fmt.Errorf("more than %d", deepest))
		return
	}
	m, ok := f.mount(at)
	if !ok {
		f.unknown("file system", fmt.Errorf("no mount of device %d:%d is visible", at.Major, at.Minor))
		if at.Major != 0 {
			f.device(at.Major, at.Minor)
		}
		return
	}
	if own {
		f.stack.FileSystem, f.stack.Options = m.Type, m.Options
	}
	layer := Layer{Kind: FileSystem, Name: m.Type, Device: fmt.Sprintf("%d:%d", at.Major, at.Minor),
		About: strings.TrimSpace(m.Source + " " + shortened(m.Options)), Source: "/proc/self/mountinfo"}
	if m.Type == "overlay" {
		layer.Kind = Overlay
	}
	if name := baseName(m.Source); name != "" {
		if n, ok := f.tree.Number("sys/fs/" + m.Type + "/" + name + "/errors_count"); ok && n > 0 {
			layer.Errors = uint64(n)
		}
	}
	f.stack.Layers = append(f.stack.Layers, layer)
	switch {
	case at.Major != 0:
		f.device(at.Major, at.Minor)
	case slices.Contains(memoryFileSystems, m.Type), slices.Contains(networkFileSystems, m.Type):
	case m.Type == "overlay":
		f.overlay(m)
	default:
		f.source(m)
	}
}

// shortened keeps a long list of lower directories out of a line.
func shortened(options string) string {
	const most = 120
	if len(options) > most {
		return options[:most] + "…"
	}
	return options
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// overlay goes on at the upper directory, or at the first lower one of a read-only overlay. In a
// container these paths are the host's, and not visible.
func (f *finder) overlay(m procfs.MountInfo) {
	for _, name := range []string{"upperdir=", "lowerdir=", "lowerdir+="} {
		for option := range strings.SplitSeq(m.Options, ",") {
			dir, ok := strings.CutPrefix(option, name)
			if !ok {
				continue
			}
			dir, _, _ = strings.Cut(dir, ":")
			if f.place.Open == nil {
				f.unknown("below the overlay", fmt.Errorf("%s%s is not in this copy", name, dir))
				return
			}
			at, err := f.place.Open(dir)
			if err != nil {
				f.unknown("below the overlay", err)
				return
			}
			f.file(at, false)
			return
		}
	}
	f.unknown("below the overlay", fmt.Errorf("its options name no directory"))
}

// source goes on at the device that a file system with a device number of its own was mounted from
// (btrfs, bcachefs), and at the further ones that btrfs lists.
func (f *finder) source(m procfs.MountInfo) {
	path, ok := strings.CutPrefix(m.Source, "/dev/")
	if !ok {
		f.unknown("below "+m.Type, fmt.Errorf("its source %q is no device", m.Source))
		return
	}
	name := strings.ReplaceAll(baseName(path), "/", "!")
	if m.Type == "btrfs" {
		if all := f.btrfsDevices(name); len(all) > 0 {
			for _, device := range all {
				f.named(device)
			}
			return
		}
	}
	f.named(name)
}

// btrfsDevices returns the devices of the file system that has one of that name.
func (f *finder) btrfsDevices(name string) []string {
	all, err := f.tree.List("sys/fs/btrfs")
	if err != nil {
		return nil
	}
	for _, uuid := range all {
		devices, err := f.tree.List("sys/fs/btrfs/" + uuid + "/devices")
		if err == nil && slices.Contains(devices, name) {
			return devices
		}
	}
	return nil
}

// named goes on at a device of that name.
func (f *finder) named(name string) {
	major, minor, ok := procfs.ParseDevice(f.tree.Optional("sys/class/block/" + name + "/dev"))
	if !ok {
		f.unknown("device "+name, fmt.Errorf("/sys/class/block does not have it"))
		return
	}
	f.device(major, minor)
}

// device adds a block device and what is below it.
func (f *finder) device(major, minor uint32) {
	id := fmt.Sprintf("%d:%d", major, minor)
	if f.seen[id] {
		return
	}
	f.seen[id] = true
	if f.steps++; f.steps > deepest {
		f.unknown("layers", fmt.Errorf("more than %d", deepest))
		return
	}
	link := "sys/dev/block/" + id
	dir, ok := f.tree.Resolve(link)
	if !ok {
		f.unknown("device "+id, fmt.Errorf("/%s is not there", link))
		return
	}
	layer := Layer{Kind: Disk, Name: baseName(dir), Device: id, Source: "/" + dir}
	if f.tree.Exists(dir + "/partition") {
		layer.Kind, layer.About = Partition, f.sector(dir)
		f.stack.Layers = append(f.stack.Layers, layer)
		if major, minor, ok := procfs.ParseDevice(f.tree.Optional(dir[:strings.LastIndexByte(dir, '/')] + "/dev")); ok {
			f.device(major, minor)
		}
		return
	}
	layer.Queue = f.queue(dir)
	switch {
	case f.tree.Exists(dir + "/loop/backing_file"):
		backing := f.tree.Optional(dir + "/loop/backing_file")
		layer.Kind, layer.About = Loop, backing
		if f.tree.Optional(dir+"/loop/dio") == "1" {
			layer.About += " (direct)"
			f.stack.BackingDirect = true
		}
		f.stack.Layers = append(f.stack.Layers, layer)
		f.stack.Backing = backing
		f.backing(layer.Name, backing)
		return
	case f.tree.Exists(dir + "/md/level"):
		layer.Kind, layer.About = RAID, f.tree.Optional(dir+"/md/level")
	case f.tree.Exists(dir + "/dm/name"):
		layer.Kind = DeviceMapper
		uuid, _, _ := strings.Cut(f.tree.Optional(dir+"/dm/uuid"), "-")
		layer.About = strings.TrimSpace(uuid + " " + f.tree.Optional(dir+"/dm/name"))
	}
	below, err := f.tree.List(dir + "/slaves")
	if layer.Kind == Disk && (err != nil || len(below) == 0) {
		f.disk(&layer, dir)
	}
	f.stack.Layers = append(f.stack.Layers, layer)
	for _, name := range below {
		f.named(name)
	}
}

func (f *finder) sector(dir string) string {
	start, ok := f.tree.Number(dir + "/start")
	if !ok {
		return ""
	}
	return "from byte " + strconv.FormatInt(start*512, 10)
}

// backing goes on at the file behind a loop device.
func (f *finder) backing(name, path string) {
	what := "below " + name
	if strings.HasSuffix(path, " (deleted)") || f.place.Open == nil {
		f.unknown(what, fmt.Errorf("%s cannot be opened", path))
		return
	}
	at, err := f.place.Open(path)
	if err != nil {
		f.unknown(what, err)
		return
	}
	f.file(at, false)
}
