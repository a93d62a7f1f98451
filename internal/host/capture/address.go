package capture

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
)

// keyBytes is the length of a scrubber's key.
const keyBytes = 32

// replacer gives replacements that follow from a key and from nothing else: the same for the same,
// whatever came before it. Whoever does not have the key cannot go back, and nobody keeps it.
type replacer struct {
	key    [keyBytes]byte
	first  [256]byte           // of public IPv4 addresses
	second map[byte]*[256]byte // of those whose first octet is partly special
	cache  map[netip.Addr]netip.Addr
}

func newReplacer(key [keyBytes]byte) *replacer {
	r := &replacer{key: key, second: make(map[byte]*[256]byte), cache: make(map[netip.Addr]netip.Addr)}
	// Public first octets change places among themselves, so that a public address stays public.
	// Those of special blocks (10, 127, 224 and up) are fixed points: an address that became
	// private by replacement would turn a diagnosis upside down.
	r.first = r.shuffle("first", func(octet byte) bool {
		return octet >= 1 && octet < 224 && octet != 10 && octet != 127 && !mixed(octet)
	})
	// Below these six the second octet decides, so it is moved in a table of its own and the first
	// stays. That tells a reader that an address was one of 192/8, which is 1/256 of the Internet;
	// keeping 192.168 private is worth that.
	for _, octet := range []byte{100, 169, 172, 192, 198, 203} {
		table := r.shuffle("second"+string(rune(octet)), func(second byte) bool { return !special(octet, second) })
		r.second[octet] = &table
	}
	return r
}

// sum is the keyed hash that everything is taken from. kind keeps, say, a name and a serial number
// with the same text apart.
func (r *replacer) sum(kind, value string) [sha256.Size]byte {
	// Without the key nobody can test a guess, which is what keeps the replacements: there are no
	// more than 2³² IPv4 addresses to try, and of a maker's cards no more than 2²⁴.
	h := hmac.New(sha256.New, r.key[:])
	h.Write([]byte(kind + "\x00" + value))
	var out [sha256.Size]byte
	h.Sum(out[:0])
	return out
}

// shuffle gives a permutation of the octets that moves those with the property among themselves and
// leaves the others where they are.
func (r *replacer) shuffle(kind string, moves func(byte) bool) [256]byte {
	var table [256]byte
	var from []byte
	for i := range table {
		table[i] = byte(i)
		if moves(byte(i)) {
			from = append(from, byte(i))
		}
	}
	// Sorted by a keyed hash: every order is as likely as any other, and the key decides. A
	// Fisher-Yates shuffle would need a stream of random numbers; ranks need nothing but the hash
	// that everything else is made of.
	rank := make(map[byte]uint64, len(from))
	for _, octet := range from {
		sum := r.sum(kind, string(rune(octet)))
		rank[octet] = binary.BigEndian.Uint64(sum[:])
	}
	to := slices.SortedFunc(slices.Values(from), func(a, b byte) int {
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

// mixed are the first octets below which some second octets are special and others public (RFC
// 6890, the registry of special-purpose addresses).
//
// The registry grows by small blocks; one that comes after this table was written is treated as
// public, which replaces more than is needed.
func mixed(first byte) bool {
	switch first {
	case 100, 169, 172, 192, 198, 203:
		return true
	}
	return false
}

// special tells the second octets that keep their meaning: shared (100.64/10), link-local
// (169.254/16), private (172.16/12, 192.168/16), and those that hold the blocks for protocols,
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

// documentation are the blocks that belong to nobody (RFC 5737); their third octet says so and
// stays.
var documentation = [...]netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
}

// addr replaces an address; the zone, which is an interface, stays. What has a meaning of its own
// stays whole: unspecified, loopback, multicast, broadcast and the masks that look like addresses.
// Two addresses that share a prefix share one of the same length afterwards: each bit is turned or
// not by a hash of the bits before it (Xu et al., "Prefix-preserving IP address anonymization",
// ICNP 2002), once the leading octets have been moved within their class.
func (r *replacer) addr(a netip.Addr) netip.Addr {
	if zone := a.Zone(); zone != "" {
		return r.addr(a.WithZone("")).WithZone(zone)
	}
	if to, ok := r.cache[a]; ok {
		return to
	}
	// The cache is for speed alone: a table of a thousand neighbours has the same few networks in
	// it, and each bit of each address costs a hash. The answer would be the same without it.
	to := a
	switch {
	case a.IsUnspecified(), a.IsLoopback():
	case a.Is4():
		to = r.addr4(a)
		// A socket for both versions prints IPv4 peers in this form. They have to stay the same
		// hosts as in the tables that print them plainly.
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

// addr4 replaces an address that is neither unspecified nor loopback. How many leading bits are
// settled by its class is in fixed.
func (r *replacer) addr4(a netip.Addr) netip.Addr {
	b := a.As4()
	from := b
	fixed := 8
	switch first := from[0]; {
	// 0/8 is "this network", 127/8 this host, 224/4 groups: none of them says whose host it is.
	// What begins with 255 is a netmask or a broadcast, and 0.0.0.0 a gateway that nobody set.
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

// embeds are the prefixes behind which an IPv4 address stands: NAT64 (RFC 6052) and 6to4 (RFC
// 3056).
var embeds = [...]struct {
	block netip.Prefix
	at    int // byte
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2}}

// addr6 does the same for IPv6. Embedded addresses of IPv4 are replaced as such, so that they still
// are the same ones.
func (r *replacer) addr6(a netip.Addr) netip.Addr {
	b := a.As16()
	from := b
	fixed := 0
	// First of all, because an embedded address is worth more than the block around it: 6to4 has
	// the router's public IPv4 address in it.
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
	// What is in no block is given to nobody; it must not be moved into one that has a meaning.
	if fixed == 0 {
		fixed = 16
	}
	// The eighth bit of an address in fc00::/7 says who gave the prefix (RFC 4193 §3.1): fd stays
	// fd.
	if from[0]&0xfe == 0xfc {
		fixed = 8
	}
	r.turn("6", from[:], b[:], fixed)
	// An interface identifier made of a hardware address (RFC 4291, appendix A) is made of the
	// replaced one afterwards. Turned bit by bit it would be another card's, and a reader could no
	// longer see which neighbour is which. The mark ff:fe in the middle is all that tells such an
	// identifier from a random one, which has it once in 65,536 times; nothing is lost by taking
	// that for a card's.
	if from[11] == 0xff && from[12] == 0xfe && !a.IsMulticast() {
		hardware := r.mac([]byte{from[8] ^ 2, from[9], from[10], from[13], from[14], from[15]})
		copy(b[8:], []byte{hardware[0] ^ 2, hardware[1], hardware[2], 0xff, 0xfe, hardware[3], hardware[4],
			hardware[5]})
	}
	return netip.AddrFrom16(b)
}

// turn turns the bits of to from number fixed on, each by a hash of the bits of from in front of
// it.
func (r *replacer) turn(kind string, from, to []byte, fixed int) {
	for bit := fixed; bit < len(from)*8; bit++ {
		// The bits in front of this one, the rest of the last byte cleared: two addresses that
		// agree up to here get the same answer, and their first different bit stays different
		// because it is turned in both or in neither.
		prefix := slices.Clone(from[:bit/8+1])
		prefix[bit/8] &^= 0xff >> (bit % 8)
		// The number of the bit is part of what is hashed, since 10.0 as eight bits and as sixteen
		// are different prefixes of the same bytes.
		sum := r.sum(kind+string(rune(bit)), string(prefix))
		to[bit/8] ^= sum[0] & 1 << (7 - bit%8)
	}
}

// prefix replaces an address with a prefix length. A network stays a network: the bits behind its
// length stay zero. Prefixes that are shorter than what is kept of every address stay whole: halves
// of everything are nobody's.
func (r *replacer) prefix(p netip.Prefix) netip.Prefix {
	a := p.Addr()
	// 0.0.0.0/1 and 128.0.0.0/1 are how VPNs take over the default route: a reader has to see that,
	// and they name nobody.
	if p.Bits() < 8 && p == p.Masked() {
		return p
	}
	to := netip.PrefixFrom(r.addr(a), p.Bits())
	if p == p.Masked() {
		return to.Masked()
	}
	return to
}

// mac replaces a hardware address of any length by one that no maker gave: locally administered,
// and multicast where it was. All zeros and all ones stay.
func (r *replacer) mac(b []byte) []byte {
	if !slices.ContainsFunc(b, func(octet byte) bool { return octet != b[0] }) && (b[0] == 0 || b[0] == 0xff) {
		return b
	}
	// The maker's half goes too. It would tell the card, which driver and PCI id tell better, and
	// with a date of purchase it narrows the serial half down to a few thousand.
	sum := r.sum("mac", string(b))
	to := slices.Clone(sum[:len(b)]) // InfiniBand's 20 bytes are the longest.
	// The two low bits of the first octet (IEEE 802): group and local.
	to[0] = to[0]&^3 | 2 | b[0]&1
	return to
}

// identifier replaces a run of hexadecimal digits by another one of the same length and case,
// whatever stands between the digits. All zeros stay.
func (r *replacer) identifier(text string) string {
	if strings.Trim(text, "0-") == "" {
		return text
	}
	sum := r.sum("identifier", strings.ToLower(text))
	digits := hex.EncodeToString(sum[:])
	digits += digits // Longer ones than 64 digits are not asked for; see hexadecimal.
	out := []byte(text)
	// Hyphens stay where they are: a UUID has to stay one for the programs that read it.
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

// name gives a word in place of a name: "host-3f9a0c".
func (r *replacer) name(kind, value string) string {
	sum := r.sum(kind, value)
	return kind + "-" + hex.EncodeToString(sum[:3])
}
