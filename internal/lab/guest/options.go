package guest

import (
	"errors"
	"fmt"
	"io/fs"
)

// Card is a network card of a guest. It has a link, and at the other end of it the cards that name
// the same wire.
type Card struct {
	// as after -device of QEMU: "e1000", "virtio-net-pci,mq=on,vectors=6"; a "usb-…" brings a USB
	// controller with it
	Model string
	// pairs of queues behind a virtio card; 0 and 1 are one. Several need a tap, which QEMU makes
	// in a namespace of its own
	Queues int
	// from 1: cards of one wire hear each other, as on a repeater that is never too slow. 0: nobody
	// is there
	Wire int
}

// Options say what a guest has. The zero value has one processor and no card.
type Options struct {
	CPUs        int   // 0: 1
	MemoryBytes int64 // 0: 512 MiB
	// the guest's clock counts its instructions, a nanosecond each; for one processor. See the
	// package's doc
	Counted bool
	Cards   []Card // become eth0, eth1, … in the order in which the drivers find them, not in this one
	// kernel modules to load, each with parameters behind blanks: "e1000 InterruptThrottleRate=500"
	Modules  []string
	Programs []string // programs of this machine that are in the guest at the same path, with their shared libraries
	// nil: the guest has no system but ourselves. Else it starts the one on the disk, and Programs
	// are left out
	Disk  *Disk
	Files []File // written to the disk before its system starts
}

// File is one to be on a disk.
type File struct {
	Path    string // absolute
	Content []byte
	Mode    fs.FileMode // permission bits
}

// check says what QEMU would not, or would only by hanging.
func (o Options) check() error {
	if o.Counted && o.CPUs > 1 {
		return fmt.Errorf("%d processors on a clock that counts instructions: want one (QEMU 7.2 hangs when the second starts)", o.CPUs)
	}
	if o.Disk == nil && len(o.Files) > 0 || o.Disk != nil && len(o.Programs) > 0 {
		return errors.New("files are for a disk, and programs for a guest without one")
	}
	for _, c := range o.Cards {
		if c.Wire < 0 || c.Wire > 0 && c.Queues > 1 {
			return fmt.Errorf("card %s with %d pairs of queues on wire %d: a wire is from 1, and a card on it has one pair", c.Model, c.Queues, c.Wire)
		}
	}
	return nil
}

// CardAddress is the hardware address of Options.Cards[i], by which a card is known whatever the
// kernel calls it.
func CardAddress(i int) string { return fmt.Sprintf("52:54:00:00:00:%02x", i+1) }
