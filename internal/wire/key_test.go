package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/wire"
)

func TestKeyAsPeopleTypeIt(t *testing.T) {
	k := wire.NewKey()
	text := k.String()
	if groups := strings.Split(text, "-"); len(groups) != 7 || len(groups[0]) != 4 {
		t.Fatalf("key %q is not seven groups of four", text)
	}
	for _, typed := range []string{
		text,
		strings.ToLower(text),
		strings.ReplaceAll(text, "-", ""),
		strings.ReplaceAll(text, "-", " "),
		" " + text + "\r\n",
		strings.ReplaceAll(strings.ReplaceAll(text, "0", "o"), "1", "l"),
		strings.ReplaceAll(strings.ReplaceAll(text, "0", "O"), "1", "I"),
	} {
		got, err := wire.ParseKey(typed)
		if err != nil || got != k {
			t.Errorf("ParseKey(%q) = %v, %v; want %v", typed, got, err, k)
		}
	}
	if wire.NewKey() == k {
		t.Error("two new keys are the same")
	}
}

func TestKeyTypingSlips(t *testing.T) {
	plain := strings.ReplaceAll(wire.NewKey().String(), "-", "")
	for at := range plain {
		for _, c := range wire.KeyAlphabet {
			if byte(c) == plain[at] {
				continue
			}
			typed := plain[:at] + string(c) + plain[at+1:]
			_, err := wire.ParseKey(typed)
			if !errors.Is(err, wire.ErrBadKey) {
				t.Fatalf("wrong character %q at %d was accepted: %v", c, at, err)
			}
			if want := "group " + string(rune('1'+at/4)); !strings.Contains(err.Error(), want) {
				t.Fatalf("wrong character at %d: %v does not point at %s", at, err, want)
			}
		}
	}
	for a := range plain {
		for b := a + 1; b < len(plain); b++ {
			if plain[a] == plain[b] {
				continue
			}
			swapped := []byte(plain)
			swapped[a], swapped[b] = swapped[b], swapped[a]
			_, err := wire.ParseKey(string(swapped))
			if !errors.Is(err, wire.ErrBadKey) {
				t.Fatalf("swapping %d and %d was accepted", a, b)
			}
			if want := "group " + string(rune('1'+a/4)); b == a+1 && !strings.Contains(err.Error(), want) {
				t.Fatalf("swapping %d and %d: %v does not point at %s", a, b, err, want)
			}
		}
	}
}

// TestKeyHintIsTrue: no hint claims that a group is wrong unless it must be. Two wrong characters
// look like one elsewhere, so the group of one is named with that condition.
func TestKeyHintIsTrue(t *testing.T) {
	plain := []byte(strings.ReplaceAll(wire.NewKey().String(), "-", ""))
	other := func(c byte, by int) byte {
		return wire.KeyAlphabet[(strings.IndexByte(wire.KeyAlphabet, c)+by)%len(wire.KeyAlphabet)]
	}
	for a := range plain {
		for b := a + 1; b < len(plain); b++ {
			typed := bytes.Clone(plain)
			typed[a], typed[b] = other(typed[a], 7), other(typed[b], 12)
			_, err := wire.ParseKey(string(typed))
			if !errors.Is(err, wire.ErrBadKey) || !strings.Contains(err.Error(), "compare every group") {
				t.Fatalf("two wrong characters, %d and %d: %v", a, b, err)
			}
		}
	}
}

func TestKeyRefusals(t *testing.T) {
	plain := strings.ReplaceAll(wire.NewKey().String(), "-", "")
	for name, c := range map[string]struct{ typed, want string }{
		"empty":     {"", "0 characters instead of the 28"},
		"cut":       {plain[:27], "27 characters instead of the 28"},
		"too long":  {plain + "0", "29 characters instead of the 28"},
		"no letter": {plain[:8] + "U" + plain[9:], "'U' in group 3"},
		"not ASCII": {plain[:4] + "ä" + plain[5:], "'ä' in group 2"},
		"no letter, after a short group": {group(plain[:4]) + group(plain[4:7]) + group("U"+plain[9:12]) + plain[12:],
			"'U' in group 3"},
		"no letter, after a long group": {group(plain[:4]+"00000") + "*" + plain[5:], "'*' in group 2"},
		"a short group": {group(plain[:4]) + group(plain[4:7]) + plain[8:], "27 characters instead of the 28 that " +
			"`linerate serve` prints: group 2 has 3"},
		"a long group": {group(plain[:4]) + group(plain[4:8]+"0") + plain[8:], ": group 2 has 5"},
		"a group less": {group(plain[:4]) + plain[4:8], ": it has 2 groups"},
		"all zero":     {strings.Repeat("0", 28), "all characters are 0"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := wire.ParseKey(c.typed)
			if !errors.Is(err, wire.ErrBadKey) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !k.IsZero() {
				t.Error("the error comes with a key")
			}
		})
	}
}

func TestIdentitiesFollowFromTheKey(t *testing.T) {
	k, other := wire.NewKey(), wire.NewKey()
	der := func(k wire.Key, role string) []byte {
		c, err := wire.KeyCertificate(k, role)
		if err != nil {
			t.Fatal(err)
		}
		return c.Certificate[0]
	}
	if !bytes.Equal(der(k, "server"), der(k, "server")) {
		t.Error("one key yields two server certificates")
	}
	if bytes.Equal(der(k, "server"), der(k, "client")) || bytes.Equal(der(k, "server"), der(other, "server")) {
		t.Error("roles or keys share a certificate")
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(wire.NewKey().String())
	f.Add("0123-4567-89AB-CDEF-GHJK-MNPQ-RSTV")
	f.Add("oooo-IIII-llll")
	f.Add("\xff\xfe-")
	f.Fuzz(func(t *testing.T, typed string) {
		k, err := wire.ParseKey(typed)
		if err != nil {
			if !errors.Is(err, wire.ErrBadKey) {
				t.Fatalf("%v is not ErrBadKey", err)
			}
			return
		}
		again, err := wire.ParseKey(k.String())
		if err != nil || again != k {
			t.Fatalf("%q is read as %v, which reads back as %v, %v", typed, k, again, err)
		}
	})
}

func group(s string) string { return s + "-" }
