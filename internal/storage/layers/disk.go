package layers

import (
	"strconv"
	"strings"
)

// queue reads a device's queue directory; nil where it has none.
func (f *finder) queue(dir string) *Queue {
	dir += "/queue"
	if !f.tree.Exists(dir) {
		return nil
	}
	number := func(name string) int64 {
		n, _ := f.tree.Number(dir + "/" + name)
		return n
	}
	q := &Queue{
		Requests: number("nr_requests"), ReadAheadBytes: number("read_ahead_kb") * 1024,
		WriteCache: f.tree.Optional(dir + "/write_cache"), RequestAffinity: number("rq_affinity"),
		WriteLimitMicros: number("wbt_lat_usec"), LogicalBytes: number("logical_block_size"),
		PhysicalBytes: number("physical_block_size"), LargestBytes: number("max_sectors_kb") * 1024,
		Rotational: number("rotational") == 1,
	}
	for _, word := range strings.Fields(f.tree.Optional(dir + "/scheduler")) {
		name := strings.Trim(word, "[]")
		if name != word {
			q.Scheduler = name
		}
		q.Schedulers = append(q.Schedulers, name)
	}
	if hardware, err := f.tree.List(strings.TrimSuffix(dir, "/queue") + "/mq"); err == nil {
		q.HardwareQueues = len(hardware)
	}
	q.DeviceQueueLength, _ = f.tree.Number(strings.TrimSuffix(dir, "/queue") + "/device/queue_depth")
	return q
}

// virtualVendors are the SCSI vendors and NVMe models of disks that programs provide.
var virtualVendors = []string{"QEMU", "VMware", "VBOX", "Msft", "Xen", "Amazon Elastic Block Store",
	"Amazon EC2 NVMe Instance Storage", "Google", "Virtual"}

// disk fills in what a disk at the bottom is.
func (f *finder) disk(l *Layer, dir string) {
	model := strings.Join(strings.Fields(f.tree.Optional(dir+"/device/vendor")+" "+
		f.tree.Optional(dir+"/device/model")), " ")
	if strings.HasPrefix(model, "0x") {
		model = "" // virtio's vendor is a number
	}
	l.About = model
	l.Medium = f.medium(l, dir, model)
	l.Link = f.link(dir)
	if text := f.tree.Optional(dir + "/device/ioerr_cnt"); text != "" {
		// SCSI counts in hexadecimal, with 0x.
		if n, err := strconv.ParseUint(text, 0, 64); err == nil {
			l.Errors = n
		}
	}
}

func (f *finder) medium(l *Layer, dir, model string) Medium {
	for _, memory := range []string{"zram", "ram", "pmem", "nullb"} {
		rest, ok := strings.CutPrefix(l.Name, memory)
		if ok && strings.Trim(rest, "0123456789") == "" {
			return Memory
		}
	}
	if strings.Contains(dir, "/virtio") || strings.HasPrefix(l.Name, "xvd") || strings.HasPrefix(l.Name, "vd") {
		return Virtual
	}
	for _, vendor := range virtualVendors {
		if strings.Contains(model, vendor) {
			return Virtual
		}
	}
	switch {
	case strings.HasPrefix(l.Name, "nvme"):
		return NVMe
	case strings.HasPrefix(l.Name, "mmcblk"):
		return Flash
	case l.Queue == nil || strings.HasPrefix(l.Name, "nbd") || strings.HasPrefix(l.Name, "rbd"):
		return UnknownMedium
	case l.Queue.Rotational:
		return HDD
	}
	return SSD
}

// link reads the speed of a disk's connection: that of its ATA link, or of the PCIe slot of an NVMe
// controller.
func (f *finder) link(dir string) *Link {
	for part := range strings.SplitSeq(dir, "/") {
		number, ok := strings.CutPrefix(part, "ata")
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		base := "sys/class/ata_link/link" + number
		now, okNow := speed(f.tree.Optional(base + "/sata_spd"))
		if !okNow {
			return nil
		}
		l := &Link{Kind: "sata", BitsPerSecond: now, Source: "/" + base + "/sata_spd"}
		// The limit is what the host's port allows; a drive may be slower by nature.
		l.MaxBitsPerSecond, _ = speed(f.tree.Optional(base + "/hw_sata_spd_limit"))
		return l
	}
	at := dir + "/device/device"
	now, ok := speed(f.tree.Optional(at + "/current_link_speed"))
	if !ok {
		return nil
	}
	width, _ := f.tree.Number(at + "/current_link_width")
	most, _ := speed(f.tree.Optional(at + "/max_link_speed"))
	mostWidth, _ := f.tree.Number(at + "/max_link_width")
	l := &Link{Kind: "pcie", BitsPerSecond: now * float64(width), MaxBitsPerSecond: most * float64(mostWidth),
		Width: int(width), MaxWidth: int(mostWidth), Source: "/" + at + "/current_link_speed"}
	return l
}

// speed reads "6.0 Gbps", "8.0 GT/s PCIe" and "8 GT/s"; false for "<unknown>".
func speed(text string) (bitsPerSecond float64, ok bool) {
	number, unit, _ := strings.Cut(text, " ")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !strings.HasPrefix(unit, "G") {
		return 0, false
	}
	return x * 1e9, true
}
