package ethtool

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// linkModesLanes is ETHTOOL_A_LINKMODES_LANES of linux/ethtool_netlink.h, which x/sys lacks.
const linkModesLanes = 9

// linkModes reads ETHTOOL_MSG_LINKMODES_GET, like linkMode. The sets arrive in their long form, by
// name: the mode numbers are internal to the kernel, and every release adds some.
func (k kernel) linkModes(name string) (LinkModes, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_LINKMODES_GET, name, nil)
	if err != nil {
		return LinkModes{}, err
	}
	return parseLinkModes(data)
}

// parseLinkModes reads the two sets. In the first, the listed bits are supported, and the set ones
// among them are advertised. The second has no mask and lists the offer of the other end
// (linkmodes_fill_reply).
func parseLinkModes(data []byte) (LinkModes, error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return LinkModes{}, fmt.Errorf("link modes: %w", err)
	}
	var m LinkModes
	for ad.Next() {
		switch ad.Type() {
		case unix.ETHTOOL_A_LINKMODES_AUTONEG:
			if b := ad.Bytes(); len(b) > 0 {
				m.Autoneg = b[0] != 0
			}
		case linkModesLanes:
			if b := ad.Bytes(); len(b) == 4 {
				m.Lanes = int(u32(b))
			}
		case unix.ETHTOOL_A_LINKMODES_OURS:
			ad.Nested(func(set *netlink.AttributeDecoder) error {
				ours, err := parseBitset(set)
				for mode, advertised := range ours {
					m.Supported = append(m.Supported, mode)
					if advertised {
						m.Advertised = append(m.Advertised, mode)
					}
				}
				return err
			})
		case unix.ETHTOOL_A_LINKMODES_PEER:
			ad.Nested(func(set *netlink.AttributeDecoder) error {
				peer, err := parseBitset(set)
				for mode, on := range peer {
					if on {
						m.Partner = append(m.Partner, mode)
					}
				}
				return err
			})
		}
	}
	if err := ad.Err(); err != nil {
		return LinkModes{}, fmt.Errorf("link modes: %w", err)
	}
	for _, modes := range [][]string{m.Supported, m.Advertised, m.Partner} {
		slices.Sort(modes)
	}
	return m, nil
}

// maxAddress is MAX_ADDR_LEN. The longest hardware address, that of InfiniBand, has 20 bytes.
const maxAddress = 32

// permanentAddress uses an ioctl (ETHTOOL_GPERMADDR), which every kernel has. IFLA_PERM_ADDRESS
// reports the same, but only since 5.6.
func (k kernel) permanentAddress(name string) (string, error) {
	buf := make([]byte, 8+maxAddress)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GPERMADDR)
	binary.NativeEndian.PutUint32(buf[4:], maxAddress)
	if err := k.Ioctl(name, buf); err != nil {
		return "", err
	}
	return parsePermanentAddress(buf)
}

// parsePermanentAddress reads struct ethtool_perm_addr: u32 command, u32 size, then the address.
// All zeros means that the device has no permanent address.
func parsePermanentAddress(b []byte) (string, error) {
	if len(b) < 8 {
		return "", nl.ErrShort
	}
	n := u32(b[4:])
	if uint64(n) > uint64(len(b)-8) {
		return "", fmt.Errorf("an address of %d bytes in %d", n, len(b)-8)
	}
	address := b[8:][:n]
	if !slices.ContainsFunc(address, func(octet byte) bool { return octet != 0 }) {
		return "", nil
	}
	return net.HardwareAddr(address).String(), nil
}
