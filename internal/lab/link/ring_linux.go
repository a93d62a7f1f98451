package link

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ring of TPACKET_V2: blocks of 1020 KiB with fifteen slots of 68 KiB, each large enough for a
// super-frame and the kernel's header before it. Its memory does not count against the socket's
// limit, by which an unprivileged socket of an older kernel (net.core.rmem_max of 208 KiB) holds
// only five super-frames. The ring costs 34 MB per direction and is therefore the second choice.
const (
	ringSlot   = 68 << 10
	ringPerBlk = 15
	ringBlock  = ringPerBlk * ringSlot
	ringBlocks = 34
	ringSlots  = ringPerBlk * ringBlocks
)

// Offsets in struct tpacket2_hdr, the head of each slot (include/uapi/linux/if_packet.h).
const (
	slotStatus  = 0  // u32: whether the kernel or the reader owns the slot
	slotLen     = 4  // u32: original length of the frame
	slotSnaplen = 8  // u32: bytes kept
	slotMAC     = 12 // u16: offset of the Ethernet header; the segmentation header ends there
)

// ring reads frames from memory that it shares with the kernel, without a system call.
type ring struct {
	mem  []byte
	next int
}

func newRing(fd int) (*ring, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return nil, fmt.Errorf("choose packet ring version: %w", err)
	}
	req := unix.TpacketReq{Block_size: ringBlock, Block_nr: ringBlocks, Frame_size: ringSlot, Frame_nr: ringSlots}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return nil, fmt.Errorf("make packet ring of %d bytes: %w", ringBlock*ringBlocks, err)
	}
	mem, err := unix.Mmap(fd, 0, ringBlock*ringBlocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map packet ring: %w", err)
	}
	return &ring{mem: mem}, nil
}

func (r *ring) read(each func([]byte)) (n, cut int, err error) {
	for ; n < batch; n++ {
		slot := r.mem[r.next*ringSlot:][:ringSlot]
		status := (*uint32)(unsafe.Pointer(&slot[slotStatus]))
		if atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
			return n, cut, nil
		}
		// The reader owns the slot until it stores the status back, so plain loads suffice; the
		// atomic load above orders them after itself.
		whole, kept := *(*uint32)(unsafe.Pointer(&slot[slotLen])), *(*uint32)(unsafe.Pointer(&slot[slotSnaplen]))
		mac := int(*(*uint16)(unsafe.Pointer(&slot[slotMAC])))
		// Checked although the kernel wrote them: a wrong offset would read outside the slot.
		if whole != kept || mac < headerLen || mac+int(kept) > ringSlot {
			cut++
		} else {
			each(slot[mac-headerLen : mac+int(kept)])
		}
		atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
		r.next = (r.next + 1) % ringSlots
	}
	return n, cut, nil
}

func (r *ring) close() error { return unix.Munmap(r.mem) }
