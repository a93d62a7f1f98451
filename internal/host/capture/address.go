package capture

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// keyBytes is the length of a scrubber's key.
const keyBytes = 32

// replacer computes replacements from a key alone: equal inputs get equal replacements, in any
// order. Without the key they cannot be reversed, and the key is never stored.
type replacer struct {
	key    [keyBytes]byte
	first  [256]byte           // of public IPv4 addresses
	second map[byte]*[256]byte // of those whose first octet is partly special
	cache  map[netip.Addr]netip.Addr
}

func newReplacer(key [keyBytes]byte) *replacer {
	r := &replacer{key: key, second: make(map[byte]*[256]byte), cache: make(map[netip.Addr]netip.Addr)}
	// Public first octets are permuted among themselves, so that a public address stays public.
	// Those of special blocks (10, 127, 224 and up) are fixed points: a replacement that turned an
	// address private would mislead a diagnosis.
	r.first = r.shuffle("first", func(octet byte) bool {
		return octet >= 1 && octet < 224 && octet != 10 && octet != 127 && !mixed(octet)
	})
	// For these six the second octet decides, so it has a permutation of its own and the first
	// stays. That reveals that an address was in, say, 192/8, which is 1/256 of the Internet;
	// keeping 192.168 private is worth that.
	for _, octet := range []byte{100, 169, 172, 192, 198, 203} {
		table := r.shuffle("second"+string(rune(octet)), func(second byte) bool { return !special(octet, second) })
		r.second[octet] = &table
	}
	return r
}

// sum is the keyed hash from which every replacement is derived. kind separates, say, a name and a
// serial number with the same text.
func (r *replacer) sum(kind, value string) [sha256.Size]byte {
	// Guesses cannot be tested without the key. This matters, because there are only 2³² IPv4
	// addresses to try, and only 2²⁴ for the cards of one vendor.
	h := hmac.New(sha256.New, r.key[:])
	h.Write([]byte(kind + "\x00" + value))
	var out [sha256.Size]byte
	h.Sum(out[:0])
	return out
}

// shuffle returns a permutation of the octets that permutes those with the property among
// themselves and leaves the others in place.
func (r *replacer) shuffle(kind string, moves func(byte) bool) [256]byte {
	var table [256]byte
	var from []byte
	for i := range table {
		table[i] = byte(i)
		if moves(byte(i)) {
			from = append(from, byte(i))
		}
	}
	// Sorted by a keyed hash: every order is equally likely, and the key decides. A Fisher-Yates
	// shuffle would need a stream of random numbers; ranks need only the hash that all replacements
	// use.
	rank := make(map[byte]uint64, len(from))
	for _, octet := range from {
		sum := r.sum(kind, string(rune(octet)))
		rank[octet] = binary.BigEndian.Uint64(sum[:])
	}
	to := slices.Clone(from)
	sorting.Func(to, func(a, b byte) int {
		switch {
		case rank[a] < rank[b]:
			return -1
		case rank[a] > rank[b]:
			return 1
		}
		return int(a) - int(b)
	})
	for i, octet := range from {
		table[octet] = to[i]
	}
	return table
}

// mixed reports whether below a first octet some second octets are special and others public (RFC
// 6890, the registry of special-purpose addresses).
//
// The registry grows by small blocks. A block newer than this table is treated as public, which
// replaces more than necessary.
func mixed(first byte) bool {
	switch first {
	case 100, 169, 172, 192, 198, 203:
		return true
	}
	return false
}

// special reports whether a second octet keeps its meaning: shared (100.64/10), link-local
// (169.254/16), private (172.16/12, 192.168/16), and the octets of the blocks for protocols,
// benchmarks and documentation.
func special(first, second byte) bool {
	switch first {
	case 100:
		return second >= 64 && second < 128
	case 169:
		return second == 254
	case 172:
		return second >= 16 && second < 32
	case 192:
		return second == 168 || second == 0 || second == 88
	case 198:
		return second == 18 || second == 19 || second == 51
	case 203:
		return second == 0
	}
	return false
}

// documentation lists the blocks for documentation (RFC 5737); their third octet identifies them
// and stays.
var documentation = [...]netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
}

// addr replaces an address; the zone, which is an interface, stays. Addresses with a meaning of
// their own stay whole: unspecified, loopback, multicast, broadcast and masks that look like
// addresses. Two addresses that share a prefix share one of the same length afterwards: each bit is
// flipped or not by a hash of the bits before it (Xu et al., "Prefix-preserving IP address
// anonymization", ICNP 2002), after the leading octets have been permuted within their class.
func (r *replacer) addr(a netip.Addr) netip.Addr {
	if zone := a.Zone(); zone != "" {
		return r.addr(a.WithZone("")).WithZone(zone)
	}
	if to, ok := r.cache[a]; ok {
		return to
	}
	// The cache only saves time: a table of a thousand neighbours has the same few networks, and
	// each bit of each address costs a hash.
	to := a
	switch {
	case a.IsUnspecified(), a.IsLoopback():
	case a.Is4():
		to = r.addr4(a)
		// A socket for both versions prints IPv4 peers in this form. They must get the replacements
		// that the tables with plain addresses get.
	case a.Is4In6():
		v4 := r.addr(a.Unmap()).As4()
		b := a.As16()
		copy(b[12:], v4[:])
		to = netip.AddrFrom16(b)
	default:
		to = r.addr6(a)
	}
	r.cache[a] = to
	return to
}

// addr4 replaces an address that is neither unspecified nor loopback. fixed is the number of
// leading bits that its class settles.
func (r *replacer) addr4(a netip.Addr) netip.Addr {
	b := a.As4()
	from := b
	fixed := 8
	switch first := from[0]; {
	// 0/8 is "this network", 127/8 this host, 224/4 groups: none of them identifies a host. An
	// address that begins with 255 is a netmask or a broadcast, and 0.0.0.0 an unset gateway.
	case first == 0, first == 127, first == 255, a.IsMulticast():
		return a
	case mixed(first):
		fixed = 16
		b[1] = r.second[first][from[1]]
		for _, block := range documentation {
			if block.Contains(a) {
				fixed = 24
			}
		}
	case first != 10:
		b[0] = r.first[first]
	}
	r.turn("4", from[:], b[:], fixed)
	return netip.AddrFrom4(b)
}

// solicited is the range of solicited-node multicast groups (RFC 4291 §2.7.1): the last 24 bits are
// those of a unicast address.
var solicited = netip.MustParsePrefix("ff02::1:ff00:0/104")

// keeps6 are blocks whose first bits carry the meaning, most special first. The rest of 2000::/3 is
// public.
var keeps6 = [...]netip.Prefix{
	netip.MustParsePrefix("fe80::/64"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fc00::/7"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("2000::/3"), solicited,
}

// embeds are the prefixes that are followed by an IPv4 address: NAT64 (RFC 6052) and 6to4 (RFC
// 3056).
var embeds = [...]struct {
	block netip.Prefix
	at    int // byte
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2}}

// addr6 is addr4 for IPv6. Embedded IPv4 addresses get their IPv4 replacements, so that both forms
// stay the same host.
func (r *replacer) addr6(a netip.Addr) netip.Addr {
	b := a.As16()
	from := b
	fixed := 0
	// First of all, because an embedded address matters more than the block around it: 6to4
	// contains the router's public IPv4 address.
	for _, e := range embeds {
		if e.block.Contains(a) {
			v4 := r.addr(netip.AddrFrom4([4]byte(from[e.at:]))).As4()
			copy(b[e.at:], v4[:])
			fixed = (e.at + 4) * 8
		}
	}
	for _, block := range keeps6 {
		if fixed == 0 && block.Contains(a) {
			fixed = block.Bits()
		}
	}
	if a.IsMulticast() && fixed == 0 {
		return a
	}
	// An address in no block is unassigned; it must not move into a block with a meaning.
	if fixed == 0 {
		fixed = 16
	}
	// The eighth bit of an address in fc00::/7 shows who assigned the prefix (RFC 4193 §3.1): fd
	// stays fd.
	if from[0]&0xfe == 0xfc {
		fixed = 8
	}
	r.turn("6", from[:], b[:], fixed)
	// An interface identifier made from a hardware address (RFC 4291, appendix A) is made from the
	// replaced one afterwards. Flipped bit by bit it would become another card's, and a reader
	// could no longer match neighbours. Only the mark ff:fe in the middle distinguishes such an
	// identifier from a random one, which has it once in 65,536 times; mistaking that one for a
	// card's does no harm.
	if from[11] == 0xff && from[12] == 0xfe && !a.IsMulticast() {
		hardware := r.mac([]byte{from[8] ^ 2, from[9], from[10], from[13], from[14], from[15]})
		copy(b[8:], []byte{hardware[0] ^ 2, hardware[1], hardware[2], 0xff, 0xfe, hardware[3], hardware[4],
			hardware[5]})
	}
	return netip.AddrFrom16(b)
}

// turn flips the bits of to from number fixed on, each by a hash of the bits of from before it.
func (r *replacer) turn(kind string, from, to []byte, fixed int) {
	for bit := fixed; bit < len(from)*8; bit++ {
		// The bits before this one, the rest of the last byte cleared. Two addresses that agree up
		// to here get the same result, and their first different bit stays different because it is
		// flipped in both or in neither.
		prefix := slices.Clone(from[:bit/8+1])
		prefix[bit/8] &^= 0xff >> (bit % 8)
		// The number of the bit is part of the hash input, since 10.0 as eight bits and as sixteen
		// are different prefixes of the same bytes.
		sum := r.sum(kind+string(rune(bit)), string(prefix))
		to[bit/8] ^= sum[0] & 1 << (7 - bit%8)
	}
}

// prefix replaces an address with a prefix length. A network stays a network: the bits after its
// length stay zero. Prefixes shorter than what every address keeps stay whole, because they
// identify no one.
func (r *replacer) prefix(p netip.Prefix) netip.Prefix {
	a := p.Addr()
	// VPNs take over the default route with 0.0.0.0/1 and 128.0.0.0/1. A reader has to see that,
	// and they identify no one.
	if p.Bits() < 8 && p == p.Masked() {
		return p
	}
	to := netip.PrefixFrom(r.addr(a), p.Bits())
	if p == p.Masked() {
		return to.Masked()
	}
	return to
}

// mac replaces a hardware address of any length by a locally administered one, multicast if it was.
// All zeros and all ones stay.
func (r *replacer) mac(b []byte) []byte {
	if !slices.ContainsFunc(b, func(octet byte) bool { return octet != b[0] }) && (b[0] == 0 || b[0] == 0xff) {
		return b
	}
	// The vendor's half is replaced too. It would show the card's vendor, which driver and PCI id
	// show better, and with a date of purchase it narrows the serial half to a few thousand.
	sum := r.sum("mac", string(b))
	to := slices.Clone(sum[:len(b)]) // InfiniBand's 20 bytes are the longest.
	// The two low bits of the first octet (IEEE 802): group and local.
	to[0] = to[0]&^3 | 2 | b[0]&1
	return to
}

// identifier replaces a run of hexadecimal digits by another one of the same length and case, and
// keeps the characters between the digits. All zeros stay.
func (r *replacer) identifier(text string) string {
	if strings.Trim(text, "0-") == "" {
		return text
	}
	sum := r.sum("identifier", strings.ToLower(text))
	digits := hex.EncodeToString(sum[:])
	digits += digits // More than 64 digits never occur; see hexadecimal.
	out := []byte(text)
	// Hyphens stay where they are: a UUID must stay valid for the programs that read it.
	next := 0
	for i, c := range out {
		if c == '-' {
			continue
		}
		out[i] = digits[next]
		next++
	}
	if strings.ToUpper(text) == text {
		return strings.ToUpper(string(out))
	}
	return string(out)
}

// name returns a word that replaces a name: "host-3f9a0c".
func (r *replacer) name(kind, value string) string {
	sum := r.sum(kind, value)
	return kind + "-" + hex.EncodeToString(sum[:3])
}
