package storage

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
)

// Copy compares the disk and the network of a copy between two hosts: the slower of the two holds
// it.
type Copy struct {
	Path string `json:"path"`
	Test Test   `json:"test"` // of the disk: what a copy does to it
	// Holds is disk, network, or both where they differ by less than a tenth.
	Holds             string  `json:"holds"`
	DiskBytesPerSec   float64 `json:"disk_bytes_per_second"`
	DiskWhose         Whose   `json:"disk_whose"`
	NetworkBitsPerSec float64 `json:"network_bits_per_second"`
	// Ratio is what the faster one carries over what the slower one does.
	Ratio   float64 `json:"ratio"`
	Because string  `json:"because"` // a sentence
}

// The values of [Copy].Holds.
const (
	HeldByDisk    = "disk"
	HeldByNetwork = "network"
	HeldByBoth    = "both"
)

// alike is up to where two rates are taken for one: a copy that overlaps both loses more than that.
const alike = 1.1

// NewCopy compares what a path carries with what a disk does. Both were measured one after the
// other, so nothing that the two share (a processor, a bus) shows.
func NewCopy(path string, networkBitsPerSec float64, disk *Result) *Copy {
	c := &Copy{Path: path, Test: disk.Test, DiskBytesPerSec: disk.ThroughputBytesPerSec, DiskWhose: disk.Whose,
		NetworkBitsPerSec: networkBitsPerSec, Holds: HeldByBoth}
	bits := 8 * disk.ThroughputBytesPerSec
	slower, faster := min(bits, networkBitsPerSec), max(bits, networkBitsPerSec)
	if slower > 0 {
		c.Ratio = faster / slower
	}
	whose, subject := "", "disk"
	if !c.OfDisk() {
		whose, subject = fmt.Sprintf(" (%s, not a disk's figure)", c.DiskWhose), "storage"
	}
	figures := fmt.Sprintf("%s of %s: %s%s; the network: %s", disk.Test, path, unit.BitRate(bits), whose,
		unit.BitRate(networkBitsPerSec))
	switch {
	case slower <= 0:
		c.Because = figures + "."
	case c.Ratio < alike:
		c.Because = figures + ". They are alike: a faster one alone would not speed a copy up."
	case bits < networkBitsPerSec:
		c.Holds, c.Because = HeldByDisk, fmt.Sprintf("%s. The network carries %.3g times as much.", figures, c.Ratio)
	default:
		c.Holds, c.Because = HeldByNetwork, fmt.Sprintf("%s. The %s does %.3g times as much.", figures, subject, c.Ratio)
	}
	return c
}

// OfDisk reports whether the figure is a disk's. Otherwise a disk below may still hold the copy.
func (c *Copy) OfDisk() bool { return c.DiskWhose == Device }
