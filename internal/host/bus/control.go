package bus

import "encoding/binary"

// Control is how large a PCIe device makes its packets, in bytes, as firmware or the kernel has set
// it. Every packet carries some 24 bytes of header and framing, so small ones cost a share of the
// link.
type Control struct {
	PayloadBytes          int // largest payload of a packet that the device sends (MPS)
	PayloadSupportedBytes int // what it could do; the way up to the processor has to agree
	ReadRequestBytes      int // how much the device asks for at once when it reads memory (MRRS)
}

// Control reads Device Capabilities (at 0x04) and Device Control (at 0x08) of the PCI Express
// capability (PCIe 5.0 §7.5.3.3 and §7.5.3.4). False: not PCIe, or nobody may read its
// configuration space, of which everybody but root sees the first 64 bytes.
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

// packetSize decodes a code of three bits: 128 bytes doubled so many times; the last two are
// reserved, and 0 bytes are not known.
func packetSize(code uint16) int {
	if code &= 7; code > 5 {
		return 0
	}
	return 128 << code
}
