package capture

import (
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// tokenByte reports whether addresses, identifiers and names contain a byte. The percent sign
// precedes a zone.
func tokenByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == ':' || c == '-' ||
		c == '_' || c == '%'
}

// text replaces everything that looks like an address or an identifier, and the learned names, in
// text of any kind. It applies where no closer rule is known: replacing too much is the smaller
// harm.
func (s *scrubber) text(in string) string {
	var out strings.Builder
	for i := 0; i < len(in); {
		// By bytes and not by runes: all targets are ASCII, and no byte of a longer rune is a token
		// byte, so those pass unchanged.
		if !tokenByte(in[i]) {
			out.WriteByte(in[i])
			i++
			continue
		}
		end := i
		for end < len(in) && tokenByte(in[end]) {
			end++
		}
		// A prefix length belongs to the address before it: a replaced network must stay a network.
		// The slash is no token byte, because it separates the elements of paths; so the length is
		// searched for after the token.
		if length := end + digits(in, end+1); end < len(in) && in[end] == '/' && length > end {
			if p, err := netip.ParsePrefix(in[i : length+1]); err == nil {
				out.WriteString(s.replace.prefix(p).String())
				i = length + 1
				continue
			}
		}
		out.WriteString(s.token(in[i:end]))
		i = end
	}
	return out.String()
}

// digits counts the decimal digits in text starting at at.
func digits(text string, at int) int {
	n := 0
	for at+n < len(text) && text[at+n] >= '0' && text[at+n] <= '9' {
		n++
	}
	return n
}

// token replaces one run of token bytes.
func (s *scrubber) token(in string) string {
	// Sentences and tables append their own punctuation: a full stop after an address ends a
	// sentence, a colon introduces something. Both may also occur inside a token, so only those at
	// its end are removed, and added again.
	core := strings.TrimRight(in, ".:-%")
	if strings.HasSuffix(in, "::") && !strings.HasSuffix(in, ":::") {
		core = in // "fe80::" ends with its own colons.
	}
	tail := in[len(core):]
	if to, ok := s.identifier(core); ok {
		return to + tail
	}
	// netip is strict: four numbers without leading zeros, or an IPv6 address in any of its forms.
	// A time of day and a place on a PCI bus are neither.
	if a, err := netip.ParseAddr(core); err == nil {
		return s.replace.addr(a).String() + tail
	}
	// The port shows the service and stays.
	if ap, err := netip.ParseAddrPort(core); err == nil {
		return netip.AddrPortFrom(s.replace.addr(ap.Addr()), ap.Port()).String() + tail
	}
	// A range of addresses, as in rules and leases.
	if parts := strings.Split(core, "-"); len(parts) == 2 {
		from, err1 := netip.ParseAddr(parts[0])
		to, err2 := netip.ParseAddr(parts[1])
		if err1 == nil && err2 == nil {
			return s.replace.addr(from).String() + "-" + s.replace.addr(to).String() + tail
		}
	}
	// After the addresses: if a host is named after its address, the rule for the address is
	// better.
	if to, ok := s.names[core]; ok {
		return to + tail
	}
	return s.interfaceName(core) + tail
}

// identifier replaces a token with the form of an identifier: UUID, hardware address, or 32, 40 or
// 64 hexadecimal digits, which are machines, commits and containers.
func (s *scrubber) identifier(core string) (string, bool) {
	// Forms with a fixed length only. Shorter runs of hexadecimal digits are masks, counters and
	// features, which a diagnosis needs.
	if len(core) == 36 && core[8] == '-' && core[13] == '-' && core[18] == '-' && core[23] == '-' &&
		hexadecimal(strings.ReplaceAll(core, "-", "")) {
		return s.replace.identifier(core), true
	}
	if n := len(core); (n == 32 || n == 40 || n == 64) && hexadecimal(core) {
		return s.replace.identifier(core), true
	}
	// Ethernet, EUI-64 and InfiniBand. Other counts of pairs are times of day, places on a bus, and
	// IPv6 addresses, which have rules of their own.
	if n := strings.Count(core, ":") + 1; (n == 6 || n == 8 || n == 20) && len(core) == 3*n-1 {
		if b, err := hex.DecodeString(strings.ReplaceAll(core, ":", "")); err == nil && len(b) == n {
			return colons(s.replace.mac(b)), true
		}
	}
	return "", false
}

// colons formats a hardware address as the kernel does (%pM).
func colons(b []byte) string {
	var out strings.Builder
	for i, octet := range b {
		if i > 0 {
			out.WriteByte(':')
		}
		out.WriteString(hex.EncodeToString([]byte{octet}))
	}
	return out.String()
}

// hexadecimal reports whether a text has only hexadecimal digits; an empty text counts too.
func hexadecimal(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F')
	})
}

// byAddress matches the names that systemd derives from a card's hardware address: Ethernet,
// wireless LAN, modem (systemd.net-naming-scheme).
var byAddress = pattern.New(`(en|wl|ww)x[0-9a-f]{12}`)

// interfaceName replaces a hardware address in the name of an interface, anywhere in the token: a
// setting has it between dots.
func (s *scrubber) interfaceName(in string) string {
	// Nearly every token of a capture passes here, and hardly any has that letter; the expression
	// is slow.
	if !strings.Contains(in, "x") {
		return in
	}
	// The name follows the address everywhere, so a reader still sees that interface, neighbour
	// entry and sysctl are of one card.
	return byAddress.ReplaceAllStringFunc(in, func(name string) string {
		b, err := hex.DecodeString(name[len("enx"):])
		if err != nil {
			return name
		}
		return name[:len("enx")] + hex.EncodeToString(s.replace.mac(b))
	})
}
