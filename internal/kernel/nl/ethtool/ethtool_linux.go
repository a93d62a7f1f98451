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

// ask sends one ethtool request for a device and returns the payload of the answer.
//
// One message answers the request for one device. A dump would cover all devices, but is not used,
// because one slow driver would delay all of them.
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

// ethtoolRequest sends one message of the family: the header nest, then the attributes of the
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

// family returns the number of the generic netlink family.
func (k kernel) family() (uint16, error) {
	number, err := k.Family("ethtool")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: ethtool over netlink needs Linux 5.6", nl.ErrNotSupported)
	}
	return number, err
}

// uint32s returns the 32-bit attributes of a message by number, and the 8-bit ones widened. It
// skips nests and all other attributes.
//
// Widening is safe because the family never uses one number for two widths. The kernel omits an
// attribute that the driver does not support, so it is absent from the map; this distinguishes
// unknown from 0.
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

// rings reads ETHTOOL_MSG_RINGS_GET (5.7), in descriptors, not bytes. It omits mini and jumbo
// rings, which no current driver fills.
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
// have separate ones for each direction, and a few count both; so all are returned.
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

// coalesceNames maps attribute numbers to the names of ethtool(8) -C: 2 to 23 since 5.7, 24 and 25
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

// coalesce reads ETHTOOL_MSG_COALESCE_GET (5.7). The kernel omits a parameter that the driver
// lacks, so an absent key differs from zero.
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

// linkMode reads ETHTOOL_MSG_LINKMODES_GET (5.6). The kernel reports Mb/s; linkMode returns bits
// per second.
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

// decodeLinkMode handles both "unknown" values: SPEED_UNKNOWN is all ones, and virtio and some
// other drivers report 0.
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

// linkInfo reads ETHTOOL_MSG_LINKINFO_GET (5.6). The numbers are PORT_TP to PORT_DA, PORT_NONE
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

// features sends the request without ETHTOOL_FLAG_COMPACT_BITSETS, so that bits arrive with their
// names: the bit numbers change between kernels, the names do not.
func (k kernel) features(name string) (map[string]Feature, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_FEATURES_GET, name, nil)
	if err != nil {
		return nil, err
	}
	return parseFeatures(data)
}

// parseFeatures reads a FEATURES_GET answer with named bits. The set "hw" lists every name, and its
// values report whether a feature can change. "active" lists the features that are on, "nochange"
// those that never change.
//
// The kernel fills hw from dev->hw_features, active from dev->features and nochange from
// NETIF_F_NEVER_CHANGE. The fourth set, wanted, holds requested features; only the active ones
// count here.
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

// parseBitset reads a bitset in its long form: the listed bits by name. In a set without a mask, a
// listed bit is a set bit; in one with a mask, the flag ETHTOOL_A_BITSET_BIT_VALUE decides.
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

// oneBit encodes a bitset that changes only the bit it names. It has a mask, which lists the bits
// that count, and the long form, which needs no numbers.
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

// setFeature switches one bit of the wanted features. Rules of the kernel (netdev_fix_features) and
// of the driver determine the effective ones: segmentation, for example, depends on transmit
// checksums. setFeature reads the state before, to recognise fixed features and unknown names, and
// afterwards, to check the effect.
func (k kernel) setFeature(name, feature string, on bool) error {
	before, err := k.features(name)
	if err != nil {
		return err
	}
	// A fixed feature that already has the wanted value is no error: an undo must be able to
	// restore it.
	f, ok := before[feature]
	switch {
	case !ok:
		return fmt.Errorf("%w: the kernel has no feature with this name", fs.ErrNotExist)
	case f.On == on && f.Fixed:
		return nil
	case f.Fixed:
		return fmt.Errorf("%w: the driver fixes this feature", nl.ErrNotSupported)
	}
	// The request is sent even if the bit already has the wanted value, because wanted and active
	// may differ. The reply is suppressed: it would arrive as a second message beside the
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
	// The kernel switches off features whose requirements are off (netdev_fix_features) but
	// remembers that they are wanted. Since that alone changes no packet, it is reported as a
	// failure; the feature comes on when its requirement does.
	if after[feature].On != on {
		return fmt.Errorf("%w: it is wanted now and takes effect when the features it depends on allow",
			nl.ErrNotApplied)
	}
	return nil
}

// u32 reads in the byte order of the host, which netlink uses.
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
