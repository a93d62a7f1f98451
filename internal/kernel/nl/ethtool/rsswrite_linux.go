package ethtool

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// Receive hashing is written by ioctl on every kernel. ETHTOOL_MSG_RSS_SET (6.17) changes nothing
// that the ioctl cannot, and few machines would test a second way.

// rxfhNoChange as the entry count leaves the table unchanged (ETH_RXFH_INDIR_NO_CHANGE). The count
// 0 restores the driver's default table.
const rxfhNoChange = 0xffffffff

// Offsets in struct ethtool_rxfh of linux/ethtool.h.
const (
	rxfhCounts   = 8  // u32 entries of the table, u32 bytes of the key
	rxfhFunction = 16 // u8, one bit of ETH_RSS_HASH_*
)

// readRxfh returns the struct with table and key, and the offset of the key.
func (k kernel) readRxfh(name string) (b []byte, key int, err error) {
	if b, err = k.rxfh(name); err != nil {
		return nil, 0, err
	}
	if _, err := parseRxfh(b); err != nil {
		return nil, 0, err
	}
	return b, sizeRxfh + 4*int(u32(b[rxfhCounts:])), nil
}

// rssKey returns nl.ErrNotSupported for a driver that does not report its key: an undo could not
// restore such a key, so it must not be overwritten.
func (k kernel) rssKey(name string) ([]byte, error) {
	b, at, err := k.readRxfh(name)
	if err != nil {
		return nil, err
	}
	n := int(u32(b[rxfhCounts+4:]))
	if n == 0 {
		return nil, fmt.Errorf("%w: the driver reports no key", nl.ErrNotSupported)
	}
	return slices.Clone(b[at:][:n]), nil
}

// writeRxfh starts from the struct that was read, so that the byte after the function (a
// transformation of the input, since 6.8) remains the same, and marks the rest as unchanged.
func (k kernel) writeRxfh(read []byte, name string, function byte, entries uint32, table []uint32, key []byte) error {
	b := slices.Clone(read[:sizeRxfh])
	binary.NativeEndian.PutUint32(b, unix.ETHTOOL_SRSSH)
	binary.NativeEndian.PutUint32(b[rxfhCounts:], entries)
	binary.NativeEndian.PutUint32(b[rxfhCounts+4:], uint32(len(key)))
	b[rxfhFunction] = function // 0: unchanged
	for _, q := range table {
		b = binary.NativeEndian.AppendUint32(b, q)
	}
	return k.Ioctl(name, append(b, key...))
}

// setRSSIndirection reads back, except for the driver's default table, which is not known
// beforehand. It checks the length here, because the kernel returns EINVAL both for a wrong length
// and for a queue that the NIC lacks, and the user should see which it was.
func (k kernel) setRSSIndirection(name string, table []uint32) error {
	b, _, err := k.readRxfh(name)
	if err != nil {
		return err
	}
	n := int(u32(b[rxfhCounts:]))
	switch {
	case n == 0:
		return fmt.Errorf("%w: the driver has no table", nl.ErrNotSupported)
	case len(table) != 0 && len(table) != n:
		return fmt.Errorf("table of %d entries: want %d: %w", len(table), n, unix.EINVAL)
	}
	if err := k.writeRxfh(b, name, 0, uint32(len(table)), table, nil); err != nil || len(table) == 0 {
		return err
	}
	after, err := k.rss(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if !slices.Equal(after.Indirection, table) {
		return nl.ErrNotApplied
	}
	return nil
}

// setRSSKey leaves table and function unchanged. The caller reads back, because only the caller
// should hold the key.
func (k kernel) setRSSKey(name string, key []byte) error {
	b, _, err := k.readRxfh(name)
	if err != nil {
		return err
	}
	switch n := int(u32(b[rxfhCounts+4:])); {
	case n == 0:
		return fmt.Errorf("%w: the driver reports no key", nl.ErrNotSupported)
	case len(key) != n:
		return fmt.Errorf("key of %d bytes: want %d: %w", len(key), n, unix.EINVAL)
	}
	return k.writeRxfh(b, name, 0, rxfhNoChange, nil, key)
}

// setRSSFunction numbers the functions like ETH_RSS_HASH_TOP_BIT and its successors. It refuses a
// driver that does not report its present function, because an undo could not restore that.
func (k kernel) setRSSFunction(name, function string) error {
	bit := slices.Index([]string{"toeplitz", "xor", "crc32"}, function)
	if bit < 0 {
		return fmt.Errorf("hash function %q: want toeplitz, xor or crc32: %w", function, unix.EINVAL)
	}
	b, _, err := k.readRxfh(name)
	if err != nil {
		return err
	}
	switch hashFunction(uint32(b[rxfhFunction])) {
	case function:
		return nil
	case "":
		return fmt.Errorf("%w: the driver does not report its hash function", nl.ErrNotSupported)
	}
	return k.writeRxfh(b, name, 1<<bit, rxfhNoChange, nil, nil)
}

// flowTypes are the kinds of flows whose hash fields ethtool(8) sets: TCP_V4_FLOW etc. of
// linux/ethtool.h.
var flowTypes = map[string]uint32{"tcp4": 1, "udp4": 2, "sctp4": 3, "tcp6": 5, "udp6": 6, "sctp6": 7}

// hashLetters map the letters of ethtool(8) to the bits RXH_*, in the order that ethtool(8) uses:
// destination MAC, VLAN, protocol, source and destination address, first and last two bytes of the
// transport header, discard.
var hashLetters = []struct {
	letter string
	bit    uint64
}{{"m", 1 << 1}, {"v", 1 << 2}, {"t", 1 << 3}, {"s", 1 << 4}, {"d", 1 << 5}, {"f", 1 << 6}, {"n", 1 << 7},
	{"r", 1 << 31}}

// sizeRxnfc is the size of struct ethtool_rxnfc: u32 command, u32 flow type, u64 data, and a rule,
// which is unused here.
const sizeRxnfc = 192

// rxfhFields reads the fields of one kind of flow. The buffer holds the whole struct including the
// rule: present kernels copy only its first 16 bytes for this command, older ones all of it.
func (k kernel) rxfhFields(name, flow string) (buf []byte, err error) {
	typ, ok := flowTypes[flow]
	if !ok {
		return nil, errNoWord("kind of flow", flow)
	}
	buf = make([]byte, sizeRxnfc)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GRXFH)
	binary.NativeEndian.PutUint32(buf[4:], typ)
	return buf, k.Ioctl(name, buf)
}

func (k kernel) hashFields(name, flow string) (string, error) {
	buf, err := k.rxfhFields(name, flow)
	if err != nil {
		return "", err
	}
	return fieldLetters(binary.NativeEndian.Uint64(buf[8:])), nil
}

// fieldLetters omits bits of later kernels that have no letter.
func fieldLetters(mask uint64) string {
	var out strings.Builder
	for _, l := range hashLetters {
		if mask&l.bit != 0 {
			out.WriteString(l.letter)
		}
	}
	return out.String()
}

// setHashFields reads back, because a driver may accept a request and hash as before.
func (k kernel) setHashFields(name, flow, fields string) error {
	want, err := fieldMask(fields)
	if err != nil {
		return err
	}
	buf, err := k.rxfhFields(name, flow)
	if err != nil {
		return err
	}
	before := binary.NativeEndian.Uint64(buf[8:])
	if before == want {
		return nil
	}
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_SRXFH)
	binary.NativeEndian.PutUint64(buf[8:], want)
	if err := k.Ioctl(name, buf); err != nil {
		return err
	}
	after, err := k.hashFields(name, flow)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if after == fieldLetters(before) {
		return nl.ErrNotApplied
	}
	return nil
}

// fieldMask refuses a repeated letter: it is probably a typing error, which the mask would hide.
func fieldMask(fields string) (mask uint64, err error) {
	for _, r := range fields {
		i := slices.IndexFunc(hashLetters, func(l struct {
			letter string
			bit    uint64
		}) bool {
			return l.letter == string(r)
		})
		if i < 0 {
			return 0, fmt.Errorf("hash fields %q: want letters of mvtsdfnr: %w", fields, unix.EINVAL)
		}
		mask |= hashLetters[i].bit
	}
	if bits.OnesCount64(mask) != len(fields) {
		return 0, fmt.Errorf("hash fields %q: a letter twice: %w", fields, unix.EINVAL)
	}
	return mask, nil
}
