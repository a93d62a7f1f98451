package ethtool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// ask sends one ethtool request for a device and gives the payload of the answer.
//
// The request for one device is answered by one message; a dump, which would answer for all
// devices, is never asked for, because one driver that is slow to answer would hold up all of them.
func (k kernel) ask(cmd uint8, name string, fill func(*netlink.AttributeEncoder)) ([]byte, error) {
	msgs, err := k.ethtoolRequest(cmd, name, 0, netlink.Request, fill)
	if err != nil {
		return nil, err
	}
	if len(msgs) == 0 {
		return nil, errors.New("empty answer")
	}
	return msgs[0].Data, nil
}

// ethtoolRequest frames one message of the family: the header nest, then the attributes of the
// command. The numbers are those of linux/ethtool_netlink.h.
func (k kernel) ethtoolRequest(
	cmd uint8, name string, headerFlags uint32, flags netlink.HeaderFlags, fill func(*netlink.AttributeEncoder),
) ([]genetlink.Message, error) {
	if err := nl.CheckName(name); err != nil {
		return nil, err
	}
	family, err := k.family()
	if err != nil {
		return nil, err
	}
	data, err := nl.Encode(nil, func(ae *netlink.AttributeEncoder) {
		// Every message of the family starts with the same nest, numbered 1.
		ae.Nested(unix.ETHTOOL_A_LINKINFO_HEADER, func(h *netlink.AttributeEncoder) error {
			h.String(unix.ETHTOOL_A_HEADER_DEV_NAME, name)
			if headerFlags != 0 {
				h.Uint32(unix.ETHTOOL_A_HEADER_FLAGS, headerFlags)
			}
			return nil
		})
		if fill != nil {
			fill(ae)
		}
	})
	if err != nil {
		return nil, err
	}
	return k.Generic(family, cmd, flags, data)
}

// family is the number of the generic family.
func (k kernel) family() (uint16, error) {
	number, err := k.Family("ethtool")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: ethtool over netlink needs Linux 5.6", nl.ErrNotSupported)
	}
	return number, err
}

// uint32s collects the 32-bit attributes of a message by number, and the 8-bit ones widened; nests
// and others are left out.
//
// Widening is safe because the family has no two attributes of one number and different width. An
// attribute that the driver does not support is left out of the answer by the kernel, and then
// absent from the map: 0 and not known must not be mixed up by those who care.
func uint32s(data []byte) (map[uint16]uint32, error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return nil, err
	}
	out := make(map[uint16]uint32)
	for ad.Next() {
		if ad.TypeFlags()&netlink.Nested != 0 {
			continue
		}
		switch b := ad.Bytes(); len(b) {
		case 1:
			out[ad.Type()] = uint32(b[0])
		case 4:
			out[ad.Type()] = u32(b)
		}
	}
	return out, ad.Err()
}

// rings reads ETHTOOL_MSG_RINGS_GET (5.7): descriptors, not bytes. Mini and jumbo rings, which no
// present driver fills, are left out.
func (k kernel) rings(name string) (rx, tx Ring, err error) {
	v, err := k.readGroup(groupRings, name)
	if err != nil {
		return Ring{}, Ring{}, err
	}
	rx = Ring{Current: v[unix.ETHTOOL_A_RINGS_RX], Max: v[unix.ETHTOOL_A_RINGS_RX_MAX]}
	tx = Ring{Current: v[unix.ETHTOOL_A_RINGS_TX], Max: v[unix.ETHTOOL_A_RINGS_TX_MAX]}
	return rx, tx, nil
}

// channels reads ETHTOOL_MSG_CHANNELS_GET (5.7). Most drivers have combined channels only, some
// have separate ones for each direction, and a few count both; so all are passed on.
func (k kernel) channels(name string) (Channels, error) {
	v, err := k.readGroup(groupChannels, name)
	if err != nil {
		return Channels{}, err
	}
	return Channels{
		Rx: v[unix.ETHTOOL_A_CHANNELS_RX_COUNT], MaxRx: v[unix.ETHTOOL_A_CHANNELS_RX_MAX],
		Tx: v[unix.ETHTOOL_A_CHANNELS_TX_COUNT], MaxTx: v[unix.ETHTOOL_A_CHANNELS_TX_MAX],
		Other: v[unix.ETHTOOL_A_CHANNELS_OTHER_COUNT], MaxOther: v[unix.ETHTOOL_A_CHANNELS_OTHER_MAX],
		Combined: v[unix.ETHTOOL_A_CHANNELS_COMBINED_COUNT], MaxCombined: v[unix.ETHTOOL_A_CHANNELS_COMBINED_MAX],
	}, nil
}

// coalesceNames are the words of ethtool(8) -C by attribute number; 2 to 23 since 5.7, 24 and 25
// since 5.15, 26 to 28 since 6.3.
var coalesceNames = map[uint16]string{
	unix.ETHTOOL_A_COALESCE_RX_USECS:             "rx-usecs",
	unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES:        "rx-frames",
	unix.ETHTOOL_A_COALESCE_RX_USECS_IRQ:         "rx-usecs-irq",
	unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES_IRQ:    "rx-frames-irq",
	unix.ETHTOOL_A_COALESCE_TX_USECS:             "tx-usecs",
	unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES:        "tx-frames",
	unix.ETHTOOL_A_COALESCE_TX_USECS_IRQ:         "tx-usecs-irq",
	unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES_IRQ:    "tx-frames-irq",
	unix.ETHTOOL_A_COALESCE_STATS_BLOCK_USECS:    "stats-block-usecs",
	unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX:      "adaptive-rx",
	unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX:      "adaptive-tx",
	unix.ETHTOOL_A_COALESCE_PKT_RATE_LOW:         "pkt-rate-low",
	unix.ETHTOOL_A_COALESCE_RX_USECS_LOW:         "rx-usecs-low",
	unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES_LOW:    "rx-frames-low",
	unix.ETHTOOL_A_COALESCE_TX_USECS_LOW:         "tx-usecs-low",
	unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES_LOW:    "tx-frames-low",
	unix.ETHTOOL_A_COALESCE_PKT_RATE_HIGH:        "pkt-rate-high",
	unix.ETHTOOL_A_COALESCE_RX_USECS_HIGH:        "rx-usecs-high",
	unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES_HIGH:   "rx-frames-high",
	unix.ETHTOOL_A_COALESCE_TX_USECS_HIGH:        "tx-usecs-high",
	unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES_HIGH:   "tx-frames-high",
	unix.ETHTOOL_A_COALESCE_RATE_SAMPLE_INTERVAL: "sample-interval",
	unix.ETHTOOL_A_COALESCE_USE_CQE_MODE_TX:      "cqe-mode-tx",
	unix.ETHTOOL_A_COALESCE_USE_CQE_MODE_RX:      "cqe-mode-rx",
	26:                                           "tx-aggr-max-bytes",
	27:                                           "tx-aggr-max-frames",
	28:                                           "tx-aggr-time-usecs",
}

// coalesce reads ETHTOOL_MSG_COALESCE_GET (5.7). A parameter that the driver does not have is left
// out of the answer, so that an absent key is not a zero.
func (k kernel) coalesce(name string) (map[string]uint32, error) {
	v, err := k.readGroup(groupCoalesce, name)
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint32, len(v))
	for typ, value := range v {
		if n, ok := coalesceNames[typ]; ok {
			out[n] = value
		}
	}
	return out, nil
}

// linkMode reads ETHTOOL_MSG_LINKMODES_GET (5.6). The speed is in Mb/s in the kernel and in bits
// per second from here on.
func (k kernel) linkMode(name string) (float64, string, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_LINKMODES_GET, name, nil)
	if err != nil {
		return 0, "", err
	}
	v, err := uint32s(data)
	if err != nil {
		return 0, "", err
	}
	speed, duplex := decodeLinkMode(v)
	return speed, duplex, nil
}

// decodeLinkMode knows the two "unknown" values: SPEED_UNKNOWN is all ones, and virtio and some
// others say 0 as well.
func decodeLinkMode(v map[uint16]uint32) (bitsPerSecond float64, duplex string) {
	if mbit := v[unix.ETHTOOL_A_LINKMODES_SPEED]; mbit != 1<<32-1 {
		bitsPerSecond = float64(mbit) * 1e6
	}
	if d, ok := v[unix.ETHTOOL_A_LINKMODES_DUPLEX]; ok {
		switch d {
		case 0:
			duplex = "half"
		case 1:
			duplex = "full"
		}
	}
	return bitsPerSecond, duplex
}

// linkInfo reads ETHTOOL_MSG_LINKINFO_GET (5.6); the numbers are PORT_TP to PORT_DA, PORT_NONE
// (0xef) and PORT_OTHER (0xff) of linux/ethtool.h.
func (k kernel) linkInfo(name string) (LinkInfo, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_LINKINFO_GET, name, nil)
	if err != nil {
		return LinkInfo{}, err
	}
	v, err := uint32s(data)
	if err != nil {
		return LinkInfo{}, err
	}
	var info LinkInfo
	ports := []string{"twisted-pair", "aui", "mii", "fibre", "bnc", "direct-attach"}
	if p, ok := v[unix.ETHTOOL_A_LINKINFO_PORT]; ok {
		switch {
		case int(p) < len(ports):
			info.Port = ports[p]
		case p == 0xef:
			info.Port = "none"
		default:
			info.Port = "other"
		}
	}
	if t, ok := v[unix.ETHTOOL_A_LINKINFO_TRANSCEIVER]; ok && t < 2 {
		info.Transceiver = []string{"internal", "external"}[t]
	}
	return info, nil
}

// features asks without ETHTOOL_FLAG_COMPACT_BITSETS, so that bits come with their names: the
// numbers of the bits change from kernel to kernel, the names do not.
func (k kernel) features(name string) (map[string]Feature, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_FEATURES_GET, name, nil)
	if err != nil {
		return nil, err
	}
	return parseFeatures(data)
}

// parseFeatures reads a FEATURES_GET answer with named bits. The set "hw" lists every name, its
// values tell what can be changed; "active" and "nochange" list what is on and what is bound never
// to change.
//
// The kernel fills hw from dev->hw_features, active from dev->features and nochange from
// NETIF_F_NEVER_CHANGE. The fourth set, wanted, is what somebody asked for; only what is in effect
// counts here.
func parseFeatures(data []byte) (map[string]Feature, error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	var hw, active, nochange map[string]bool
	for ad.Next() {
		var into *map[string]bool
		switch ad.Type() {
		case unix.ETHTOOL_A_FEATURES_HW:
			into = &hw
		case unix.ETHTOOL_A_FEATURES_ACTIVE:
			into = &active
		case unix.ETHTOOL_A_FEATURES_NOCHANGE:
			into = &nochange
		default:
			continue
		}
		ad.Nested(func(nad *netlink.AttributeDecoder) (err error) {
			*into, err = parseBitset(nad)
			return err
		})
	}
	if err := ad.Err(); err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	out := make(map[string]Feature, len(hw))
	for _, set := range []map[string]bool{hw, active, nochange} {
		for n := range set {
			out[n] = Feature{On: active[n], Fixed: !hw[n] || nochange[n]}
		}
	}
	return out, nil
}

// parseBitset reads a bitset in its long form: the listed bits by name. In a set without mask a
// listed bit is a set bit; in one with a mask the flag ETHTOOL_A_BITSET_BIT_VALUE tells.
func parseBitset(ad *netlink.AttributeDecoder) (map[string]bool, error) {
	out := make(map[string]bool)
	noMask := false
	for ad.Next() {
		switch ad.Type() {
		case unix.ETHTOOL_A_BITSET_NOMASK:
			noMask = true
		case unix.ETHTOOL_A_BITSET_BITS:
			ad.Nested(func(bits *netlink.AttributeDecoder) error {
				for bits.Next() {
					if bits.Type() != unix.ETHTOOL_A_BITSET_BITS_BIT {
						continue
					}
					bits.Nested(func(bit *netlink.AttributeDecoder) error {
						name, value := "", false
						for bit.Next() {
							switch bit.Type() {
							case unix.ETHTOOL_A_BITSET_BIT_NAME:
								name = bit.String()
							case unix.ETHTOOL_A_BITSET_BIT_VALUE:
								value = true
							}
						}
						if name != "" {
							out[name] = value
						}
						return nil
					})
				}
				return nil
			})
		}
	}
	if noMask {
		for n := range out {
			out[n] = true
		}
	}
	return out, nil
}

// oneBit is a bitset that changes the one bit it names: with a mask, which lists what counts, and
// in the long form, which needs no numbers.
func oneBit(ae *netlink.AttributeEncoder, attr uint16, name string, on bool) {
	ae.Nested(attr, func(set *netlink.AttributeEncoder) error {
		set.Nested(unix.ETHTOOL_A_BITSET_BITS, func(bits *netlink.AttributeEncoder) error {
			bits.Nested(unix.ETHTOOL_A_BITSET_BITS_BIT, func(bit *netlink.AttributeEncoder) error {
				bit.String(unix.ETHTOOL_A_BITSET_BIT_NAME, name)
				bit.Flag(unix.ETHTOOL_A_BITSET_BIT_VALUE, on)
				return nil
			})
			return nil
		})
		return nil
	})
}

// setFeature switches one bit of what is wanted. What is in effect follows by rules of the kernel
// (netdev_fix_features) and of the driver: transmit checksums go first, segmentation depends on
// them. So the state is read before, to tell fixed features and unknown names apart, and
// afterwards, to tell a wish from an effect.
func (k kernel) setFeature(name, feature string, on bool) error {
	before, err := k.features(name)
	if err != nil {
		return err
	}
	// A fixed feature that has the wanted value already is no error: an undo must be able to say
	// "as it was" about it.
	f, ok := before[feature]
	switch {
	case !ok:
		return fmt.Errorf("%w: the kernel knows no feature of that name", fs.ErrNotExist)
	case f.On == on && f.Fixed:
		return nil
	case f.Fixed:
		return fmt.Errorf("%w: the driver fixes this feature", nl.ErrNotSupported)
	}
	// Even when the bit has the wanted value already the request is sent: what is wanted and what
	// is active may differ. The reply is left out: it would come as a second message besides the
	// acknowledgement, and says less than a read-back.
	_, err = k.ethtoolRequest(unix.ETHTOOL_MSG_FEATURES_SET, name, unix.ETHTOOL_FLAG_OMIT_REPLY,
		netlink.Request|netlink.Acknowledge,
		func(ae *netlink.AttributeEncoder) {
			oneBit(ae, unix.ETHTOOL_A_FEATURES_WANTED, feature, on)
		})
	if err != nil {
		return err
	}
	after, err := k.features(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	// The kernel drops what depends on something that is off (netdev_fix_features) and keeps the
	// wish. The wish alone changes no packet, so that this is reported as a failure; it comes true
	// by itself when the other feature is switched on.
	if after[feature].On != on {
		return fmt.Errorf("%w: it is wanted now and takes effect when the features it depends on allow",
			nl.ErrNotApplied)
	}
	return nil
}

// u32 reads in the byte order of the host, which is netlink's.
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
