package ethtool

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// Attributes of RSS messages: ETHTOOL_A_RSS_* of linux/ethtool_netlink_generated.h, which x/sys
// lacks.
const (
	rssHashFunction = 3 // u32, one bit set of ETH_RSS_HASH_*
	rssIndirection  = 4 // array of u32
	rssKey          = 5 // bytes
)

// rss reads ETHTOOL_MSG_RSS_GET (6.3) for context 0, which all packets use unless a rule selects
// another context.
func (k kernel) rss(name string) (RSS, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_RSS_GET, name, nil)
	switch {
	case errors.Is(err, nl.ErrNotSupported):
		// Kernels up to 6.2 have the family but not this message, and return the same error as for
		// a driver without RSS, or for a missing link. The ioctl distinguishes the three. If it
		// adds nothing, the first error is returned, for its message.
		r, olderr := k.oldRSS(name)
		if errors.Is(&nl.Error{Err: olderr}, nl.ErrNotSupported) {
			return RSS{}, err
		}
		return r, olderr
	case err != nil:
		return RSS{}, err
	}
	return parseRSS(data)
}

// sizeRxfh is the size of struct ethtool_rxfh of linux/ethtool.h without its table: five words,
// then the hash function in a byte of the sixth.
const sizeRxfh = 24

// rxfh uses the ioctl (3.8) twice: without room, to read the sizes, and then with room for that
// many entries.
func (k kernel) rxfh(name string) ([]byte, error) {
	buf := make([]byte, sizeRxfh)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GRSSH)
	if err := k.Ioctl(name, buf); err != nil {
		return nil, err
	}
	entries, key := u32(buf[8:]), u32(buf[12:])
	// The largest tables have some thousand entries. The kernel refuses the second request if the
	// sizes have changed meanwhile.
	if entries > 1<<16 || key > 1<<12 {
		return nil, fmt.Errorf("driver claims a table of %d entries and a key of %d bytes", entries, key)
	}
	buf = append(buf, make([]byte, 4*entries+key)...)
	return buf, k.Ioctl(name, buf)
}

// oldRSS is the only way on kernels before 6.3. On later kernels it confirms an error.
func (k kernel) oldRSS(name string) (RSS, error) {
	b, err := k.rxfh(name)
	if err != nil {
		return RSS{}, err
	}
	return parseRxfh(b)
}

// parseRxfh reads the struct, the table after it, and then the key.
func parseRxfh(b []byte) (RSS, error) {
	if len(b) < sizeRxfh {
		return RSS{}, nl.ErrShort
	}
	// In 64 bits, because four times the largest count overflows 32 bits, and a sum that wraps
	// would pass the check.
	entries, key := int64(u32(b[8:])), int64(u32(b[12:]))
	if int64(len(b)-sizeRxfh) < 4*entries+key {
		return RSS{}, fmt.Errorf("rss: table of %d entries and key of %d bytes in %d", entries, key, len(b)-sizeRxfh)
	}
	return RSS{HashFunction: hashFunction(uint32(b[16])), KeyBytes: int(key),
		Indirection: table(b[sizeRxfh:][:4*entries])}, nil
}

// parseRSS does not use uint32s, which would take a table of one entry for a number.
func parseRSS(data []byte) (RSS, error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return RSS{}, fmt.Errorf("rss: %w", err)
	}
	var r RSS
	for ad.Next() {
		switch ad.Type() {
		case rssHashFunction:
			r.HashFunction = hashFunction(ad.Uint32())
		case rssKey:
			r.KeyBytes = len(ad.Bytes()) // the key itself is dropped here
		case rssIndirection:
			r.Indirection = table(ad.Bytes())
		}
	}
	if err := ad.Err(); err != nil {
		return RSS{}, fmt.Errorf("rss: %w", err)
	}
	return r, nil
}

// hashFunction names ETH_RSS_HASH_* as the kernel's string set does (rss_hash_func_strings). For a
// function of a newer kernel it returns the bits.
func hashFunction(bits uint32) string {
	switch bits {
	case 0:
		return ""
	case 1:
		return "toeplitz"
	case 2:
		return "xor"
	case 4:
		return "crc32"
	}
	return fmt.Sprintf("0x%x", bits)
}

// table reads an array of u32 and ignores an incomplete last entry.
func table(b []byte) []uint32 {
	var out []uint32
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, u32(b))
	}
	return out
}
