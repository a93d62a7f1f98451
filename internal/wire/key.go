package wire

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key is the secret of one `linerate serve`: 130 random bits, written as 28 characters in seven
// groups of four. Keys compare with ==; the zero Key is not a key. It must not have fewer bits: an
// attacker who connects sees the server's certificate, and could try keys offline against its
// public key.
type Key struct {
	symbols [keySymbols]byte // five bits each
}

const (
	keySymbols = 26 // 5 bits each: 130 bits
	keyChecks  = 2
	keyLength  = keySymbols + keyChecks
	keyGroup   = 4
	// keyAlphabet is Crockford's base 32. It lacks I, L, O and U, so that no letter resembles 1 or
	// 0, and no rude word appears.
	keyAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// ErrBadKey reports that a text is not a key as linerate prints them, because it was mistyped or
// truncated. A well-formed key that the other side does not have is ErrWrongKey instead.
var ErrBadKey = errors.New("key is mistyped")

// NewKey returns a key from the system's random source.
func NewKey() Key {
	var k Key
	// rand.Read never fails (Go 1.24); each byte's low five bits are uniform.
	_, _ = rand.Read(k.symbols[:])
	for i := range k.symbols {
		k.symbols[i] &= 31
	}
	return k
}

// IsZero reports whether k is the zero Key, which is not a key.
func (k Key) IsZero() bool { return k == Key{} }

// String returns the key as the user types it: seven groups of four characters with dashes. It is
// the secret itself: print it only on the user's request, never into a log.
func (k Key) String() string {
	word := k.codeword()
	var b strings.Builder
	for i, s := range word {
		if i > 0 && i%keyGroup == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(keyAlphabet[s])
	}
	return b.String()
}

// ParseKey reads a typed key. It ignores case, dashes and blanks, and reads O as 0, I and L as 1.
// Its error wraps ErrBadKey and points to the mistake: one wrong character and two swapped
// neighbours are located, and any two wrong ones are detected.
func ParseKey(text string) (Key, error) {
	var word [keyLength]byte
	n := 0
	for at, r := range text {
		if r == '-' || r == ' ' || r == '\t' || r == '\r' || r == '\n' {
			continue
		}
		s := keySymbol(r)
		if s < 0 {
			return Key{}, fmt.Errorf("parse key: %w: %q in group %d is not a character of keys", ErrBadKey, r,
				typedGroup(text, at, n))
		}
		if n < keyLength {
			word[n] = byte(s)
		}
		n++
	}
	if n != keyLength {
		return Key{}, fmt.Errorf("parse key: %w: %d characters instead of the %d that `linerate serve` prints%s",
			ErrBadKey, n, keyLength, wrongLength(text))
	}
	if sum, weighted := syndromes(word[:]); sum != 0 || weighted != 0 {
		return Key{}, fmt.Errorf("parse key: %w: %s", ErrBadKey, slip(word, sum, weighted))
	}
	var k Key
	copy(k.symbols[:], word[:keySymbols])
	if k.IsZero() {
		return Key{}, fmt.Errorf("parse key: %w: all characters are 0", ErrBadKey)
	}
	return k, nil
}

// typedGroup returns the group, as the user sees it, of the character at a byte of a typed key;
// symbols come before it. A group that is too short moves the later ones, unless nothing separates
// them.
func typedGroup(text string, at, symbols int) int {
	separator := func(r rune) bool { return r == '-' || unicode.IsSpace(r) }
	if len(strings.FieldsFunc(text, separator)) < 2 {
		return symbols/keyGroup + 1
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return len(strings.FieldsFunc(text[:at+size], separator))
}

// keySymbol returns the five bits of a typed character, or -1.
func keySymbol(r rune) int {
	switch r {
	case 'o', 'O':
		return 0
	case 'i', 'I', 'l', 'L':
		return 1
	}
	if r >= 'a' && r <= 'z' {
		r -= 'a' - 'A'
	}
	if r > 127 {
		return -1
	}
	return strings.IndexByte(keyAlphabet, byte(r))
}

// slip says where to look in a key whose checks fail.
//
// Two checks locate one wrong character, and cannot distinguish it from two. So a group is named
// only with that condition: a user who mistyped two characters would otherwise search in a wrong
// place. Swapped neighbours leave the plain sum at zero.
func slip(word [keyLength]byte, sum, weighted byte) string {
	const all = "compare every group"
	if sum == 0 {
		if groups := swapped(word); groups != "" {
			return "are two neighbouring characters swapped? Look at " + groups + "; otherwise " + all
		}
	}
	if sum != 0 && weighted != 0 {
		if at := int(gfLog(weighted)+31-gfLog(sum)) % 31; at < keyLength {
			return fmt.Sprintf("if one character is wrong, it is in group %d, %s; otherwise %s", at/keyGroup+1,
				groupOf(word, at/keyGroup), all)
		}
	}
	return "more than one character is wrong: " + all
}

// swapped names the groups in which swapping two neighbours back satisfies the checks.
func swapped(word [keyLength]byte) string {
	var groups []string
	for i := range keyLength - 1 {
		back := word
		back[i], back[i+1] = back[i+1], back[i]
		sum, rest := syndromes(back[:])
		name := fmt.Sprintf("group %d, %s", i/keyGroup+1, groupOf(word, i/keyGroup))
		if sum == 0 && rest == 0 && back != word && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	return strings.Join(groups, " or ")
}

// wrongLength names the first group of a typed key that has not four characters; nothing for a key
// without groups.
func wrongLength(text string) string {
	groups := strings.FieldsFunc(text, func(r rune) bool { return r == '-' || unicode.IsSpace(r) })
	if len(groups) < 2 {
		return ""
	}
	for i, g := range groups {
		if n := utf8.RuneCountInString(g); n != keyGroup {
			return fmt.Sprintf(": group %d has %d", i+1, n)
		}
	}
	return fmt.Sprintf(": it has %d groups", len(groups))
}

// groupOf returns one group of four characters for an error message.
func groupOf(word [keyLength]byte, group int) string {
	b := make([]byte, keyGroup)
	for i := range b {
		b[i] = keyAlphabet[word[group*keyGroup+i]]
	}
	return string(b)
}

// codeword appends the two check symbols. The code is a shortened Reed-Solomon code over GF(32), in
// which the plain sum of all symbols and the sum weighted with α^position are both zero. Its
// distance of three detects every error in two symbols, hence every swap.
func (k Key) codeword() [keyLength]byte {
	var word [keyLength]byte
	copy(word[:], k.symbols[:])
	sum, weighted := syndromes(k.symbols[:])
	// Solve x+y = sum, x·α^26 + y·α^27 = weighted.
	a, b := gfExp(keySymbols), gfExp(keySymbols+1)
	y := gfMul(weighted^gfMul(sum, a), gfExp(31-gfLog(a^b)))
	word[keySymbols], word[keySymbols+1] = sum^y, y
	return word
}

// syndromes returns the plain and the weighted sum of symbols.
func syndromes(word []byte) (sum, weighted byte) {
	for i, s := range word {
		sum ^= s
		weighted ^= gfMul(s, gfExp(i))
	}
	return sum, weighted
}

// gfExp returns α^n in GF(32) = GF(2)[x]/(x⁵+x²+1) with α = x, which has order 31.
func gfExp(n int) byte {
	v := byte(1)
	for range n % 31 {
		v <<= 1
		if v&32 != 0 {
			v ^= 0b100101
		}
	}
	return v
}

// gfLog returns the exponent of a symbol other than zero.
func gfLog(v byte) int {
	for n := range 31 {
		if gfExp(n) == v {
			return n
		}
	}
	panic("wire: logarithm of zero in GF(32)")
}

// gfMul returns the product of two symbols.
func gfMul(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return gfExp(gfLog(a) + gfLog(b))
}
