package bus

import "encoding/binary"

// Control holds the packet sizes of a PCIe device, in bytes, as set by firmware or the kernel.
// Every packet carries some 24 bytes of header and framing, so small packets waste a share of the
// link.
type Control struct {
	PayloadBytes          int // largest payload of a packet that the device sends (MPS)
	PayloadSupportedBytes int // what it supports; every bridge up to the processor must agree
	ReadRequestBytes      int // how much the device requests at once when it reads memory (MRRS)
}

// Control reads Device Capabilities (at 0x04) and Device Control (at 0x08) of the PCI Express
// capability (PCIe 5.0 §7.5.3.3 and §7.5.3.4). ok is false if the device is not PCIe, or if the
// reader is not root and sees only the first 64 bytes of the configuration space.
func (m Machine) Control(device string) (Control, bool) {
	c := capability(m.readConfig(device), capabilityPCIe)
	if len(c) < 0x0a {
		return Control{}, false
	}
	control := binary.LittleEndian.Uint16(c[0x08:])
	return Control{
		PayloadBytes:          packetSize(control >> 5),
		PayloadSupportedBytes: packetSize(binary.LittleEndian.Uint16(c[0x04:])),
		ReadRequestBytes:      packetSize(control >> 12),
	}, true
}

// packetSize decodes a three-bit code: 128 bytes times a power of two. The last two codes are
// reserved and give 0, not known.
func packetSize(code uint16) int {
	if code &= 7; code > 5 {
		return 0
	}
	return 128 << code
}
