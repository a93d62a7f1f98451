package layers

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Limit is the strictest limit of a control group on a device. 0 is no limit.
type Limit struct {
	Group            string  `json:"group"`
	Source           string  `json:"source"`
	BytesPerSec      float64 `json:"bytes_per_second,omitempty"`
	OperationsPerSec float64 `json:"operations_per_second,omitempty"`
}

// LimitOf returns the strictest limit that the control groups of this process set on one of the
// devices (MAJOR:MINOR), for reads or for writes; nil: none that is visible. Version 2 has io.max,
// version 1 has blkio.throttle; a group inherits the limits of those above it.
func LimitOf(tree *hostfs.Tree, devices []string, writes bool) *Limit {
	b, err := tree.Read("proc/self/mountinfo")
	if err != nil {
		return nil
	}
	// What could be parsed before a strange line is still right.
	mounts, _ := procfs.ParseMountInfo(b)
	var strictest *Limit
	keep := func(group, source string, bytes, operations float64) {
		if bytes == 0 && operations == 0 {
			return
		}
		if strictest == nil {
			strictest = &Limit{}
		}
		if bytes > 0 && (strictest.BytesPerSec == 0 || bytes < strictest.BytesPerSec) {
			strictest.BytesPerSec, strictest.Group, strictest.Source = bytes, group, source
		}
		if operations > 0 && (strictest.OperationsPerSec == 0 || operations < strictest.OperationsPerSec) {
			strictest.OperationsPerSec, strictest.Group, strictest.Source = operations, group, source
		}
	}
	for line := range strings.Lines(tree.Optional("proc/self/cgroup")) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		for _, m := range mounts {
			var read func(dir, group string)
			switch {
			case controllers == "" && m.Type == "cgroup2":
				read = func(dir, group string) {
					bytes, operations := ioMax(tree.Optional(dir+"/io.max"), devices, writes)
					keep(group, "io.max", bytes, operations)
				}
			case m.Type == "cgroup" && slices.Contains(strings.Split(controllers, ","), "blkio") &&
				slices.Contains(strings.Split(m.Options, ","), "blkio"):
				read = func(dir, group string) {
					verb := "read"
					if writes {
						verb = "write"
					}
					file := "blkio.throttle." + verb + "_bps_device"
					keep(group, file, throttle(tree.Optional(dir+"/"+file), devices), 0)
					file = "blkio.throttle." + verb + "_iops_device"
					keep(group, file, 0, throttle(tree.Optional(dir+"/"+file), devices))
				}
			default:
				continue
			}
			// The mount may show only a part of the hierarchy, from its root on.
			below := strings.TrimPrefix(group, strings.TrimSuffix(m.Root, "/"))
			for at := strings.TrimSuffix(below, "/"); ; {
				read(strings.TrimPrefix(m.Path, "/")+at, cmp.Or(strings.TrimSuffix(m.Root, "/")+at, "/"))
				i := strings.LastIndexByte(at, '/')
				if i < 0 {
					break
				}
				at = at[:i]
			}
		}
	}
	return strictest
}

// ioMax reads "8:16 rbps=2097152 wbps=max riops=max wiops=120".
func ioMax(text string, devices []string, writes bool) (bytes, operations float64) {
	verb := "r"
	if writes {
		verb = "w"
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !slices.Contains(devices, fields[0]) {
			continue
		}
		for _, f := range fields[1:] {
			name, value, _ := strings.Cut(f, "=")
			n, err := strconv.ParseFloat(value, 64)
			if err != nil { // max
				continue
			}
			switch name {
			case verb + "bps":
				bytes = n
			case verb + "iops":
				operations = n
			}
		}
	}
	return bytes, operations
}

// throttle reads lines of "8:16 1048576".
func throttle(text string, devices []string) float64 {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 2 && slices.Contains(devices, fields[0]) {
			if n, err := strconv.ParseFloat(fields[1], 64); err == nil {
				return n
			}
		}
	}
	return 0
}
