package ethtool

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// eee reads ETHTOOL_MSG_EEE_GET (5.7). The modes that both ends advertise are left out: what
// matters to a measurement is whether the link sleeps, which is the bit "active".
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

// setEEE sends the switch alone; which speeds are advertised stays as it is.
//
// Only the wish is read back. Whether the link sleeps is known when it is up again and the other
// end has answered, seconds later.
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

// fec reads ETHTOOL_MSG_FEC_GET (5.13). There is no way by ioctl here: cards with FEC are younger
// than most kernels without the message, and the old struct told configured and active mode with
// different meanings from driver to driver.
func (k kernel) fec(name string) (FEC, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_FEC_GET, name, nil)
	if err != nil {
		return FEC{}, err
	}
	return parseFEC(data)
}

// Attributes of FEC messages: ETHTOOL_A_FEC_* of linux/ethtool_netlink.h, which x/sys does not
// have.
const (
	fecModes  = 2 // bitset
	fecAuto   = 3 // u8
	fecActive = 4 // u32
)

// fecWords translates the names of link modes (net/ethtool/common.c, link_mode_names) into the
// words that ethtool(8) --set-fec takes.
var fecWords = map[string]string{"None": "off", "RS": "rs", "BASER": "baser", "LLRS": "llrs"}

// fecBits are the numbers of the same link modes: the active one is told by number, unlike the
// configured ones. ETHTOOL_LINK_MODE_FEC_*_BIT of linux/ethtool.h.
var fecBits = map[uint32]string{49: "off", 50: "rs", 51: "baser", 74: "llrs"}

// parseFEC reads the answer: configured modes as a bitset without mask, the active one as a number.
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
			// 0 stands for "not known", which is why a link mode that has that number
			// (10baseT/Half) is no conflict.
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

// privateFlags reads ETHTOOL_MSG_PRIVFLAGS_GET (5.7). Names come with the bits, as with features:
// their numbers are the driver's and change with its version.
func (k kernel) privateFlags(name string) (map[string]bool, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_PRIVFLAGS_GET, name, nil)
	if err != nil {
		return nil, err
	}
	return parsePrivateFlags(data)
}

// parsePrivateFlags reads the one bitset of the answer. It has a mask of all flags, so that those
// which are off are listed too.
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

// setPrivateFlag does not send a flag that is set already: unlike a feature it has no wish apart
// from its state, so that there would be nothing to change.
func (k kernel) setPrivateFlag(name, flag string, on bool) error {
	before, err := k.privateFlags(name)
	if err != nil {
		return err
	}
	was, ok := before[flag]
	switch {
	case !ok:
		return fmt.Errorf("%w: the driver has no flag of that name", fs.ErrNotExist)
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
