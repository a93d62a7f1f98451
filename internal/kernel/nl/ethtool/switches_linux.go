package ethtool

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// eee reads ETHTOOL_MSG_EEE_GET (5.7). It omits the modes that both ends advertise: a measurement
// depends only on whether the link sleeps, which is the bit "active".
func (k kernel) eee(name string) (EEE, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_EEE_GET, name, nil)
	if err != nil {
		return EEE{}, err
	}
	v, err := uint32s(data)
	if err != nil {
		return EEE{}, err
	}
	return EEE{
		Enabled: v[unix.ETHTOOL_A_EEE_ENABLED] != 0, Active: v[unix.ETHTOOL_A_EEE_ACTIVE] != 0,
		TxLPI: v[unix.ETHTOOL_A_EEE_TX_LPI_ENABLED] != 0, TxLPITimerMicroseconds: v[unix.ETHTOOL_A_EEE_TX_LPI_TIMER],
	}, nil
}

// setEEE sends only the switch and leaves the advertised speeds unchanged.
//
// It reads back only the setting. Whether the link sleeps is known seconds later, when it is up
// again and the other end has answered.
func (k kernel) setEEE(name string, on bool) error {
	before, err := k.eee(name)
	if err != nil || before.Enabled == on {
		return err
	}
	_, err = k.ethtoolRequest(unix.ETHTOOL_MSG_EEE_SET, name, 0, netlink.Request|netlink.Acknowledge,
		func(ae *netlink.AttributeEncoder) {
			ae.Uint8(unix.ETHTOOL_A_EEE_ENABLED, uint8(digit(on)))
		})
	if err != nil {
		return err
	}
	after, err := k.eee(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if after.Enabled != on {
		return nl.ErrNotApplied
	}
	return nil
}

// fec reads ETHTOOL_MSG_FEC_GET (5.13). It has no ioctl fallback: NICs with FEC are younger than
// most kernels without the message, and the meaning of configured and active mode in the old struct
// differed between drivers.
func (k kernel) fec(name string) (FEC, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_FEC_GET, name, nil)
	if err != nil {
		return FEC{}, err
	}
	return parseFEC(data)
}

// Attributes of FEC messages: ETHTOOL_A_FEC_* of linux/ethtool_netlink.h, which x/sys lacks.
const (
	fecModes  = 2 // bitset
	fecAuto   = 3 // u8
	fecActive = 4 // u32
)

// fecWords maps the names of link modes (net/ethtool/common.c, link_mode_names) to the names that
// ethtool(8) --set-fec takes.
var fecWords = map[string]string{"None": "off", "RS": "rs", "BASER": "baser", "LLRS": "llrs"}

// fecBits are the numbers of the same link modes (ETHTOOL_LINK_MODE_FEC_*_BIT of linux/ethtool.h):
// unlike the configured modes, the active one is reported by number.
var fecBits = map[uint32]string{49: "off", 50: "rs", 51: "baser", 74: "llrs"}

// parseFEC reads the answer: the configured modes as a bitset without mask, the active one as a
// number.
func parseFEC(data []byte) (FEC, error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return FEC{}, fmt.Errorf("fec: %w", err)
	}
	var f FEC
	for ad.Next() {
		switch ad.Type() {
		case fecAuto:
			f.Auto = ad.Uint8() != 0
		case fecActive:
			// 0 means "not known". The link mode with that number (10baseT/Half) is not a FEC mode,
			// so they do not conflict.
			f.Active = fecBits[ad.Uint32()]
		case fecModes:
			ad.Nested(func(nad *netlink.AttributeDecoder) error {
				modes, err := parseBitset(nad)
				for mode, on := range modes {
					if !on {
						continue
					}
					if word, ok := fecWords[mode]; ok {
						mode = word
					}
					f.Modes = append(f.Modes, mode)
				}
				return err
			})
		}
	}
	if err := ad.Err(); err != nil {
		return FEC{}, fmt.Errorf("fec: %w", err)
	}
	slices.Sort(f.Modes)
	return f, nil
}

// privateFlags reads ETHTOOL_MSG_PRIVFLAGS_GET (5.7). Names arrive with the bits, as with features:
// the numbers are internal to the driver and change with its version.
func (k kernel) privateFlags(name string) (map[string]bool, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_PRIVFLAGS_GET, name, nil)
	if err != nil {
		return nil, err
	}
	return parsePrivateFlags(data)
}

// parsePrivateFlags reads the one bitset of the answer. Its mask covers all flags, so it also lists
// flags that are off.
func parsePrivateFlags(data []byte) (map[string]bool, error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return nil, fmt.Errorf("private flags: %w", err)
	}
	flags := make(map[string]bool)
	for ad.Next() {
		if ad.Type() == unix.ETHTOOL_A_PRIVFLAGS_FLAGS {
			ad.Nested(func(nad *netlink.AttributeDecoder) (err error) {
				flags, err = parseBitset(nad)
				return err
			})
		}
	}
	if err := ad.Err(); err != nil {
		return nil, fmt.Errorf("private flags: %w", err)
	}
	return flags, nil
}

// setPrivateFlag does not send a flag that is already set: unlike a feature, a flag has no wanted
// state apart from its actual one.
func (k kernel) setPrivateFlag(name, flag string, on bool) error {
	before, err := k.privateFlags(name)
	if err != nil {
		return err
	}
	was, ok := before[flag]
	switch {
	case !ok:
		return fmt.Errorf("%w: the driver has no flag with this name", fs.ErrNotExist)
	case was == on:
		return nil
	}
	_, err = k.ethtoolRequest(unix.ETHTOOL_MSG_PRIVFLAGS_SET, name, 0, netlink.Request|netlink.Acknowledge,
		func(ae *netlink.AttributeEncoder) {
			oneBit(ae, unix.ETHTOOL_A_PRIVFLAGS_FLAGS, flag, on)
		})
	if err != nil {
		return err
	}
	after, err := k.privateFlags(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if after[flag] != on {
		return nl.ErrNotApplied
	}
	return nil
}
