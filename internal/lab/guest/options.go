package guest

import (
	"errors"
	"fmt"
	"io/fs"
)

// Card is a network card of a guest. Its link leads to the cards with the same wire.
type Card struct {
	// Model is an argument of QEMU's -device: "e1000", "virtio-net-pci,mq=on,vectors=6". A "usb-…"
	// card adds a USB controller.
	Model string
	// Queues is the number of queue pairs of a virtio card; 0 means 1. Several need a tap, which
	// QEMU makes in its own namespace.
	Queues int
	// Wire joins cards: those with the same number, from 1, receive each other's frames, as on a
	// repeater without a rate limit. 0: the card is alone.
	Wire int
}

// Options describe a guest. The zero value has one processor and no card.
type Options struct {
	CPUs        int   // 0: 1
	MemoryBytes int64 // 0: 512 MiB
	// Counted makes the guest's clock count its instructions, a nanosecond each, on one processor.
	// See the package documentation.
	Counted bool
	Cards   []Card // named eth0, eth1, … in the order in which the drivers find them, not in this order
	// Modules are kernel modules to load, each with its parameters after blanks:
	// "e1000 InterruptThrottleRate=500".
	Modules  []string
	Programs []string // programs of this machine to copy to the same path, with their shared libraries
	// Disk has the system that the guest starts. nil: the guest runs only this program and
	// Programs.
	Disk  *Disk
	Files []File // written to the disk before its system starts
	// Drives are empty disks, behind PCI Express ports where they are virtio disks. Those are named
	// vda, vdb, … in this order, without Disk, and need the module virtio_blk.
	Drives []Drive
}

// Drive is an empty disk of a guest, which ends with it.
type Drive struct {
	SizeBytes int64
	// Bus is how the guest reaches the disk: empty for virtio_blk, "scsi" (modules virtio_scsi and
	// sd_mod) or "usb" (modules xhci_pci, usb_storage and sd_mod).
	Bus string
	// The emulator delays what exceeds these limits; 0: none.
	OperationsPerSec, BytesPerSec int64
}

// File is a file to write to a disk.
type File struct {
	Path    string // absolute
	Content []byte
	Mode    fs.FileMode // permission bits
}

// check rejects options that QEMU would accept, or on which it would hang.
func (o Options) check() error {
	if o.Counted && o.CPUs > 1 {
		return fmt.Errorf("%d processors on a clock that counts instructions: want one "+
			"(QEMU 7.2 hangs when the second starts)", o.CPUs)
	}
	if o.Disk == nil && len(o.Files) > 0 || o.Disk != nil && len(o.Programs) > 0 {
		return errors.New("files are for a disk, and programs for a guest without one")
	}
	for _, d := range o.Drives {
		if d.Bus != "" && d.Bus != "scsi" && d.Bus != "usb" {
			return fmt.Errorf("drive on bus %q: want scsi, usb, or none for virtio", d.Bus)
		}
	}
	for _, c := range o.Cards {
		if c.Wire < 0 || c.Wire > 0 && c.Queues > 1 {
			return fmt.Errorf("card %s with %d pairs of queues on wire %d: want a wire from 1 and one pair on it",
				c.Model, c.Queues, c.Wire)
		}
	}
	return nil
}

// CardAddress returns the hardware address of Options.Cards[i], which identifies a card under any
// name.
func CardAddress(i int) string { return fmt.Sprintf("52:54:00:00:00:%02x", i+1) }
