package ethtool

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// names encodes a bitset without a mask: it sets the listed bits and clears all others.
func names(ae *netlink.AttributeEncoder, attr uint16, all []string) {
	ae.Nested(attr, func(set *netlink.AttributeEncoder) error {
		set.Flag(unix.ETHTOOL_A_BITSET_NOMASK, true)
		set.Nested(unix.ETHTOOL_A_BITSET_BITS, func(bits *netlink.AttributeEncoder) error {
			for _, name := range all {
				bits.Nested(unix.ETHTOOL_A_BITSET_BITS_BIT, func(bit *netlink.AttributeEncoder) error {
					bit.String(unix.ETHTOOL_A_BITSET_BIT_NAME, name)
					return nil
				})
			}
			return nil
		})
		return nil
	})
}

// setFEC sends ETHTOOL_MSG_FEC_SET (5.13). It reads back only the configuration: the active mode is
// unknown until the link is up again.
func (k kernel) setFEC(name string, auto bool, modes []string) error {
	// The message needs the names of link modes, four of which are FEC modes; the caller uses the
	// names of ethtool(8).
	var kernelNames []string
	for _, m := range modes {
		i := ""
		for kernelName, word := range fecWords {
			if word == m {
				i = kernelName
			}
		}
		if i == "" {
			return fmt.Errorf("fec mode %q: want off, rs, baser or llrs: %w", m, unix.EINVAL)
		}
		kernelNames = append(kernelNames, i)
	}
	before, err := k.fec(name)
	if err != nil {
		return err
	}
	// Every request retrains the link, even one for the present setting.
	want := slices.Sorted(slices.Values(modes))
	if before.Auto == auto && slices.Equal(before.Modes, want) {
		return nil
	}
	_, err = k.ethtoolRequest(unix.ETHTOOL_MSG_FEC_SET, name, 0, netlink.Request|netlink.Acknowledge,
		func(ae *netlink.AttributeEncoder) {
			names(ae, fecModes, kernelNames)
			ae.Uint8(fecAuto, uint8(digit(auto)))
		})
	if err != nil {
		return err
	}
	after, err := k.fec(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if after.Auto == before.Auto && slices.Equal(after.Modes, before.Modes) {
		return nl.ErrNotApplied
	}
	return nil
}

// setLinkMode forces a mode or negotiates some.
//
// One message carries everything: a speed without autoneg beside it would change the advertised
// modes (ethnl_auto_linkmodes), and a NIC that cannot force its present speed would refuse to stop
// negotiating before it receives the other speed. Drivers refuse late: Intel's have lost the
// negotiation state by then (e1000_set_spd_dplx). After a refusal setLinkMode therefore reads the
// mode again and restores it if it changed.
func (k kernel) setLinkMode(name string, m LinkMode) error {
	before, err := k.linkModes(name)
	if err != nil {
		return err
	}
	// Check everything before sending, because a link that negotiates again is down for seconds.
	request, err := before.request(m)
	if err != nil {
		return err
	}
	if before.Autoneg && m.Autoneg && slices.Equal(before.offered(), m.sorted()) {
		return nil
	}
	if err := k.sendLinkMode(name, request); err != nil {
		if after, rerr := k.linkModes(name); rerr != nil || after.same(before) {
			return err
		}
		if back := k.sendLinkMode(name, before.restore()); back != nil {
			return fmt.Errorf("%w; but the driver changed its mode: %w", err, back)
		}
		return err
	}
	after, err := k.linkModes(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	// The speed is not known while the link comes up. A driver may replace a forced 1000/full by a
	// negotiation that offers nothing else; that is rounding, and the caller reads the result.
	if m.Autoneg == before.Autoneg && m.Autoneg && slices.Equal(after.Advertised, before.Advertised) ||
		m.Autoneg != before.Autoneg && after.same(before) {
		return nl.ErrNotApplied
	}
	return nil
}

// same ignores the offer of the other end, which changes during negotiation.
func (m LinkModes) same(other LinkModes) bool {
	return m.Autoneg == other.Autoneg && slices.Equal(m.Advertised, other.Advertised)
}

func (k kernel) sendLinkMode(name string, fill func(*netlink.AttributeEncoder)) error {
	_, err := k.ethtoolRequest(unix.ETHTOOL_MSG_LINKMODES_SET, name, 0, netlink.Request|netlink.Acknowledge, fill)
	return err
}

// request checks a wanted mode against the abilities of the NIC and returns the encoder of its
// request.
func (m LinkModes) request(want LinkMode) (func(*netlink.AttributeEncoder), error) {
	if want.Autoneg {
		supported := speeds(m.Supported)
		for _, w := range want.Modes {
			if !slices.Contains(supported, w) {
				return nil, fmt.Errorf("link mode %q: the card supports %v: %w", w, supported, unix.EINVAL)
			}
		}
		return negotiate(supported, want.Modes), nil
	}
	half := slices.Index([]string{"half", "full"}, want.Duplex)
	if half < 0 || want.SpeedMegabits == 0 {
		return nil, fmt.Errorf("forced mode of %d Mb/s, duplex %q: want a speed and half or full: %w",
			want.SpeedMegabits, want.Duplex, unix.EINVAL)
	}
	return func(ae *netlink.AttributeEncoder) {
		ae.Uint8(unix.ETHTOOL_A_LINKMODES_AUTONEG, 0)
		ae.Uint32(unix.ETHTOOL_A_LINKMODES_SPEED, want.SpeedMegabits)
		ae.Uint8(unix.ETHTOOL_A_LINKMODES_DUPLEX, uint8(half))
	}, nil
}

// restore returns the request for the previous mode. For a forced mode it restores only the switch,
// because a driver reports no speed while its link is down.
func (m LinkModes) restore() func(*netlink.AttributeEncoder) {
	if m.Autoneg {
		return negotiate(speeds(m.Supported), m.offered())
	}
	return func(ae *netlink.AttributeEncoder) { ae.Uint8(unix.ETHTOOL_A_LINKMODES_AUTONEG, 0) }
}

// negotiate names every mode of the NIC with its wanted state. The ports, pause and FEC bits of the
// same set are not named and remain unchanged.
func negotiate(supported, offered []string) func(*netlink.AttributeEncoder) {
	return func(ae *netlink.AttributeEncoder) {
		ae.Uint8(unix.ETHTOOL_A_LINKMODES_AUTONEG, 1)
		ae.Nested(unix.ETHTOOL_A_LINKMODES_OURS, func(set *netlink.AttributeEncoder) error {
			set.Nested(unix.ETHTOOL_A_BITSET_BITS, func(bits *netlink.AttributeEncoder) error {
				for _, mode := range supported {
					bits.Nested(unix.ETHTOOL_A_BITSET_BITS_BIT, func(bit *netlink.AttributeEncoder) error {
						bit.String(unix.ETHTOOL_A_BITSET_BIT_NAME, mode)
						bit.Flag(unix.ETHTOOL_A_BITSET_BIT_VALUE, slices.Contains(offered, mode))
						return nil
					})
				}
				return nil
			})
			return nil
		})
	}
}

// tunables maps names to ETHTOOL_RX_COPYBREAK etc. of linux/ethtool.h, with the width of the value
// in bytes.
var tunables = map[string]struct{ id, width uint32 }{
	"rx-copybreak": {1, 4}, "tx-copybreak": {2, 4}, "pfc-prevention-tout": {3, 2}, "tx-buf-size": {4, 4},
}

// tunableRequest returns struct ethtool_tunable: u32 command, u32 number, u32 type of the value,
// u32 length, value. The types ETHTOOL_TUNABLE_U16 and _U32 are 2 and 3. The kernel compares type
// and length with its own before it calls the driver.
func tunableRequest(command uint32, which string, v uint32) ([]byte, error) {
	t, ok := tunables[which]
	if !ok {
		return nil, errNoWord("tunable", which)
	}
	typ := uint32(3)
	if t.width == 2 {
		typ = 2
		if v > 1<<16-1 {
			return nil, fmt.Errorf("value %d: want at most 65535: %w", v, unix.ERANGE)
		}
	}
	var b []byte
	for _, word := range []uint32{command, t.id, typ, t.width} {
		b = binary.NativeEndian.AppendUint32(b, word)
	}
	if t.width == 2 {
		return binary.NativeEndian.AppendUint16(b, uint16(v)), nil
	}
	return binary.NativeEndian.AppendUint32(b, v), nil
}

// tunable uses an ioctl: the ethtool family has no message for tunables yet. The answer overwrites
// the request after the 16 bytes of its header.
func (k kernel) tunable(name, which string) (uint32, error) {
	b, err := tunableRequest(unix.ETHTOOL_GTUNABLE, which, 0)
	if err != nil {
		return 0, err
	}
	if err := k.Ioctl(name, b); err != nil {
		return 0, err
	}
	if len(b) == 18 {
		return uint32(binary.NativeEndian.Uint16(b[16:])), nil
	}
	return u32(b[16:]), nil
}

// setTunable does not read back; the caller, which writes a knob, does so after every write.
func (k kernel) setTunable(name, which string, v uint32) error {
	b, err := tunableRequest(unix.ETHTOOL_STUNABLE, which, v)
	if err != nil {
		return err
	}
	return k.Ioctl(name, b)
}

// ringWords are the attributes of the rings message that are not lengths: rx-buf-len since 5.17,
// cqe-size 5.18, tcp-data-split and tx-push 6.1, rx-push and tx-push-buf-len 6.4, hds-thresh 6.14.
var ringWords = map[string]uint16{
	"rx-buf-len": unix.ETHTOOL_A_RINGS_RX_BUF_LEN, "tcp-data-split": unix.ETHTOOL_A_RINGS_TCP_DATA_SPLIT,
	"cqe-size": unix.ETHTOOL_A_RINGS_CQE_SIZE,
	"tx-push":  unix.ETHTOOL_A_RINGS_TX_PUSH, "rx-push": unix.ETHTOOL_A_RINGS_RX_PUSH,
	"tx-push-buf-len": unix.ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN,
	"hds-thresh":      unix.ETHTOOL_A_RINGS_HDS_THRESH,
}

// ringParameters returns nothing on kernels that only have the ioctl, whose struct ends with the
// lengths.
func (k kernel) ringParameters(name string) (map[string]uint32, error) {
	v, err := k.readGroup(groupRings, name)
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint32)
	for word, attr := range ringWords {
		if n, ok := v[attr]; ok {
			out[word] = n
		}
	}
	return out, nil
}
