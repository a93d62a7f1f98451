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
// does not have.
const (
	rssHashFunction = 3 // u32, one bit set of ETH_RSS_HASH_*
	rssIndirection  = 4 // array of u32
	rssKey          = 5 // bytes
)

// rss reads ETHTOOL_MSG_RSS_GET (6.3), of context 0, the one that all packets use that no rule
// sends elsewhere.
func (k kernel) rss(name string) (RSS, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_RSS_GET, name, nil)
	switch {
	case errors.Is(err, nl.ErrNotSupported):
		// Kernels up to 6.2 have the family and not this message, and answer as a driver without it
		// does, even when there is no such link: the ioctl knows which of the three it is. Where it
		// has nothing to add the first answer stays, for its sentence.
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

// sizeRxfh is struct ethtool_rxfh of linux/ethtool.h without its table: five words and the hash
// function in a byte of the fifth.
const sizeRxfh = 24

// rxfh asks by ioctl (3.8): once with no room, which is answered by the sizes, and once with as
// much as they say.
func (k kernel) rxfh(name string) ([]byte, error) {
	buf := make([]byte, sizeRxfh)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GRSSH)
	if err := k.Ioctl(name, buf); err != nil {
		return nil, err
	}
	entries, key := u32(buf[8:]), u32(buf[12:])
	// The largest tables have some thousand entries. The kernel refuses the second request when the
	// sizes have changed in between.
	if entries > 1<<16 || key > 1<<12 {
		return nil, fmt.Errorf("driver claims a table of %d entries and a key of %d bytes", entries, key)
	}
	buf = append(buf, make([]byte, 4*entries+key)...)
	return buf, k.Ioctl(name, buf)
}

// oldRSS is the whole way for kernels before 6.3, and the second opinion for later ones.
func (k kernel) oldRSS(name string) (RSS, error) {
	b, err := k.rxfh(name)
	if err != nil {
		return RSS{}, err
	}
	return parseRxfh(b)
}

// parseRxfh reads the struct with what follows it: the table, then the key.
func parseRxfh(b []byte) (RSS, error) {
	if len(b) < sizeRxfh {
		return RSS{}, nl.ErrShort
	}
	// In 64 bits: four times the largest count does not fit into 32, and a sum that wraps would
	// pass the check.
	entries, key := int64(u32(b[8:])), int64(u32(b[12:]))
	if int64(len(b)-sizeRxfh) < 4*entries+key {
		return RSS{}, fmt.Errorf("rss: table of %d entries and key of %d bytes in %d", entries, key, len(b)-sizeRxfh)
	}
	return RSS{HashFunction: hashFunction(uint32(b[16])), KeyBytes: int(key),
		Indirection: table(b[sizeRxfh:][:4*entries])}, nil
}

// parseRSS does not go through uint32s: a table of one entry would be taken for a number there.
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
			r.KeyBytes = len(ad.Bytes()) // the key itself goes no further than here
		case rssIndirection:
			r.Indirection = table(ad.Bytes())
		}
	}
	if err := ad.Err(); err != nil {
		return RSS{}, fmt.Errorf("rss: %w", err)
	}
	return r, nil
}

// hashFunction names ETH_RSS_HASH_* as the kernel's string set does (rss_hash_func_strings). A
// function that a newer kernel has is given by its bits.
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

// table reads an array of u32; what is left of an odd length is no entry.
func table(b []byte) []uint32 {
	var out []uint32
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, u32(b))
	}
	return out
}
