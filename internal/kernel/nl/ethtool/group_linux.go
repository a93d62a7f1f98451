package ethtool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// group is a set of numbers that the kernel reads and writes together: rings, channels, coalescing
// or pause.
//
// The netlink messages of these four groups follow the older structs of linux/ethtool.h in their
// order: attribute n is the 32-bit word n−1 of the struct, whose word 0 is the command. So one
// description serves both interfaces of the kernel.
type group struct {
	get, set       uint8  // ETHTOOL_MSG_*
	oldGet, oldSet uint32 // ETHTOOL_G* and ETHTOOL_S* of the ioctl
	oldWords       int    // length of the struct, in words
	bytes          []uint16
}

// These attributes have one byte in the netlink message; all others have four
// (linux/ethtool_netlink.h).
var (
	groupRings = group{
		get: unix.ETHTOOL_MSG_RINGS_GET, set: unix.ETHTOOL_MSG_RINGS_SET,
		oldGet: unix.ETHTOOL_GRINGPARAM, oldSet: unix.ETHTOOL_SRINGPARAM, oldWords: 9,
		bytes: []uint16{unix.ETHTOOL_A_RINGS_TCP_DATA_SPLIT, unix.ETHTOOL_A_RINGS_TX_PUSH,
			unix.ETHTOOL_A_RINGS_RX_PUSH},
	}
	groupChannels = group{
		get: unix.ETHTOOL_MSG_CHANNELS_GET, set: unix.ETHTOOL_MSG_CHANNELS_SET,
		oldGet: unix.ETHTOOL_GCHANNELS, oldSet: unix.ETHTOOL_SCHANNELS, oldWords: 9,
	}
	groupCoalesce = group{
		get: unix.ETHTOOL_MSG_COALESCE_GET, set: unix.ETHTOOL_MSG_COALESCE_SET,
		oldGet: unix.ETHTOOL_GCOALESCE, oldSet: unix.ETHTOOL_SCOALESCE, oldWords: 23,
		bytes: []uint16{
			unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX,
			unix.ETHTOOL_A_COALESCE_USE_CQE_MODE_TX, unix.ETHTOOL_A_COALESCE_USE_CQE_MODE_RX,
		},
	}
	groupPause = group{
		get: unix.ETHTOOL_MSG_PAUSE_GET, set: unix.ETHTOOL_MSG_PAUSE_SET,
		oldGet: unix.ETHTOOL_GPAUSEPARAM, oldSet: unix.ETHTOOL_SPAUSEPARAM, oldWords: 4,
		bytes: []uint16{unix.ETHTOOL_A_PAUSE_AUTONEG, unix.ETHTOOL_A_PAUSE_RX, unix.ETHTOOL_A_PAUSE_TX},
	}
)

// readGroup returns the numbers by attribute. Numbers that the driver lacks are absent; the ioctl
// cannot express that and returns zeros for them.
func (k kernel) readGroup(g group, name string) (map[uint16]uint32, error) {
	if k.predatesNetlink() {
		words, err := k.oldWords(g, name)
		if err != nil {
			return nil, err
		}
		return byAttribute(words), nil
	}
	data, err := k.ask(g.get, name, nil)
	if err != nil {
		return nil, err
	}
	return uint32s(data)
}

// predatesNetlink reports whether the kernel is older than 5.6. Kernel 5.6 itself has the family
// but lacks the four groups; it is unmaintained, and its result is nl.ErrNotSupported.
func (k kernel) predatesNetlink() bool {
	if k.testOnlyByIoctl {
		return true
	}
	_, err := k.family()
	return errors.Is(err, nl.ErrNotSupported)
}

// oldWords uses SIOCETHTOOL, which every kernel still supports, so that this path can be tested on
// present kernels. All words of the struct except the command start as zero; drivers fill in the
// ones they support.
func (k kernel) oldWords(g group, name string) ([]byte, error) {
	buf := make([]byte, 4*g.oldWords)
	binary.NativeEndian.PutUint32(buf, g.oldGet)
	if err := k.Ioctl(name, buf); err != nil {
		return nil, err
	}
	return buf, nil
}

// byAttribute numbers the words of a struct like the attributes of the message.
func byAttribute(words []byte) map[uint16]uint32 {
	out := make(map[uint16]uint32, len(words)/4)
	for i := 1; i < len(words)/4; i++ {
		out[uint16(i+1)] = u32(words[4*i:])
	}
	return out
}

// changeGroup sets some numbers of a group and reads them back.
//
// It sends only those that differ. Some numbers do not read back as they were set (pause reads back
// as negotiated), and must not be overwritten with that reading when another number of the group
// changes. The kernel takes the remaining numbers from the driver under its lock, so this does not
// undo a concurrent change of another number. The ioctl sends the whole struct and leaves that race
// open.
func (k kernel) changeGroup(g group, name string, want map[uint16]uint32) error {
	before, err := k.readGroup(g, name)
	if err != nil {
		return err
	}
	change := make(map[uint16]uint32, len(want))
	for attr, v := range want {
		is, ok := before[attr]
		if !ok {
			return fmt.Errorf("%w: the driver has no such setting", nl.ErrNotSupported)
		}
		if is != v {
			change[attr] = v
		}
	}
	if len(change) == 0 {
		return nil
	}
	if k.predatesNetlink() {
		err = k.writeOld(g, name, change)
	} else {
		_, err = k.ethtoolRequest(g.set, name, 0, netlink.Request|netlink.Acknowledge,
			func(ae *netlink.AttributeEncoder) { g.encode(ae, change) })
	}
	if err != nil {
		return err
	}
	after, err := k.readGroup(g, name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return moved(before, after, change)
}

// encode writes the attributes in ascending order, so that equal changes produce equal messages.
func (g group) encode(ae *netlink.AttributeEncoder, want map[uint16]uint32) {
	for _, attr := range slices.Sorted(maps.Keys(want)) {
		if slices.Contains(g.bytes, attr) {
			ae.Uint8(attr, uint8(want[attr]))
			continue
		}
		ae.Uint32(attr, want[attr])
	}
}

// moved returns nil if the result is as wanted, or if the driver rounded, so that something differs
// from before. If nothing differs, the driver ignored the change.
func moved(before, after, want map[uint16]uint32) error {
	reached := true
	for attr, v := range want {
		if after[attr] != before[attr] {
			return nil
		}
		reached = reached && after[attr] == v
	}
	if reached {
		return nil
	}
	return nl.ErrNotApplied
}

// writeOld writes the whole struct, with only the wanted numbers changed. The ioctl cannot express
// "leave unchanged"; a zero would be a value.
func (k kernel) writeOld(g group, name string, want map[uint16]uint32) error {
	words, err := k.oldWords(g, name)
	if err != nil {
		return err
	}
	for attr, v := range want {
		at := 4 * (int(attr) - 1)
		if at+4 > len(words) {
			return fmt.Errorf("%w: this kernel's ioctl has no such setting", nl.ErrNotSupported)
		}
		binary.NativeEndian.PutUint32(words[at:], v)
	}
	binary.NativeEndian.PutUint32(words, g.oldSet)
	return k.Ioctl(name, words)
}

// errNoWord reports a direction, kind or key that no kernel has.
func errNoWord(what, word string) error {
	return fmt.Errorf("%w: the kernel has no %s %q", fs.ErrNotExist, what, word)
}

// setRing leaves the mini and jumbo rings unchanged; the read omits them too. The kernel compares
// with the maximum before it calls the driver (ethnl_set_rings), so a number above the maximum
// disturbs nothing.
func (k kernel) setRing(name, direction string, descriptors uint32) error {
	attr, ok := map[string]uint16{"rx": unix.ETHTOOL_A_RINGS_RX, "tx": unix.ETHTOOL_A_RINGS_TX}[direction]
	if !ok {
		attr, ok = ringWords[direction]
	}
	switch {
	case !ok:
		return errNoWord("ring", direction)
	case slices.Contains(groupRings.bytes, attr) && descriptors > 255:
		return fmt.Errorf("%w: %s is a byte: want at most 255", unix.ERANGE, direction)
	}
	return k.changeGroup(groupRings, name, map[uint16]uint32{attr: descriptors})
}

// setChannel changes one count and leaves the others unchanged. The kernel refuses a change that
// would leave a direction without a queue, or remove a queue that an AF_XDP socket or an RSS table
// entry uses, and names the reason.
func (k kernel) setChannel(name, kind string, n uint32) error {
	attr, ok := map[string]uint16{
		"rx": unix.ETHTOOL_A_CHANNELS_RX_COUNT, "tx": unix.ETHTOOL_A_CHANNELS_TX_COUNT,
		"combined": unix.ETHTOOL_A_CHANNELS_COMBINED_COUNT,
	}[kind]
	if !ok {
		return errNoWord("kind of channels", kind)
	}
	return k.changeGroup(groupChannels, name, map[uint16]uint32{attr: n})
}

// setCoalesce searches the map by value: a second map for 27 names could diverge from the first.
func (k kernel) setCoalesce(name, key string, v uint32) error {
	for attr, n := range coalesceNames {
		if n != key {
			continue
		}
		// The kernel takes any byte except 0 as "on" (ethnl_update_bool32), and 256 would be
		// truncated to 0.
		if slices.Contains(groupCoalesce.bytes, attr) && v > 1 {
			return fmt.Errorf("%w: %s is a switch: want 0 or 1", unix.ERANGE, key)
		}
		return k.changeGroup(groupCoalesce, name, map[uint16]uint32{attr: v})
	}
	return errNoWord("coalescing parameter", key)
}

// pause reads ETHTOOL_MSG_PAUSE_GET (5.7). It does not request the counters of pause frames: the
// statistics of the driver contain them under its own names.
func (k kernel) pause(name string) (Pause, error) {
	v, err := k.readGroup(groupPause, name)
	if err != nil {
		return Pause{}, err
	}
	return Pause{
		Autoneg: v[unix.ETHTOOL_A_PAUSE_AUTONEG] != 0, Rx: v[unix.ETHTOOL_A_PAUSE_RX] != 0,
		Tx: v[unix.ETHTOOL_A_PAUSE_TX] != 0,
	}, nil
}

// setPause sets the flow control. With negotiation on, some drivers refuse rx and tx values that
// differ from their offer; others accept them but offer the same as always, which the read-back
// shows.
func (k kernel) setPause(name string, p Pause) error {
	return k.changeGroup(groupPause, name, map[uint16]uint32{
		unix.ETHTOOL_A_PAUSE_AUTONEG: digit(p.Autoneg), unix.ETHTOOL_A_PAUSE_RX: digit(p.Rx),
		unix.ETHTOOL_A_PAUSE_TX: digit(p.Tx),
	})
}

func digit(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}
