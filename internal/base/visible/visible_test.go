package visible_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/visible"
)

// attacks are texts that a terminal would obey, and what of them may be shown.
var attacks = map[string]string{
	"\x1b]0;title\x07x":        "\ufffd]0;title\ufffdx",     // OSC: the window's title
	"\x1b[2J\x1b[1;1Hhello":    "\ufffd[2J\ufffd[1;1Hhello", // CSI: clears the screen
	"\x9b31mred":               "\ufffd31mred",              // CSI in 8 bits
	"\u009b31mred":             "\ufffd31mred",              // the same in UTF-8
	"a\rb":                     "a\ufffdb",                  // overwrites the line
	"\u202egnp.exe":            "\ufffdgnp.exe",             // right-to-left override
	"\u200fx\u200ey\u061cz":    "\ufffdx\ufffdy\ufffdz",     // marks of direction
	"\u2066a\u2069":            "\ufffda\ufffd",             // isolates
	"a\u2028b":                 "a\ufffdb",                  // a line end to some
	"a\ufeffb\u200bc":          "a\ufffdb\ufffdc",           // without width
	"\U000e0041tag":            "\ufffdtag",                 // tags
	"bell\x07 del\x7f nul\x00": "bell\ufffd del\ufffd nul\ufffd",
	"cut rune \xe2\x82":        "cut rune \ufffd",
	"Grüße, 東京, سلام":          "Grüße, 東京, سلام",
	"می\u200cخواهم":            "می\u200cخواهم", // with a joiner
}

// TestHidden decides about each rune by what Unicode says of it.
func TestHidden(t *testing.T) {
	t.Parallel()
	for what, runes := range map[string]string{
		"soft hyphen": "\u00ad", "grapheme joiner": "\u034f", "Hangul fillers": "\u115f\u1160\u3164\uffa0",
		"Khmer inherent vowels": "\u17b4\u17b5", "Mongolian separator": "\u180e", "no width": "\u200b\u2060\ufeff",
		"operators without form": "\u2061\u2062\u2063\u2064", "unassigned and ignorable": "\u2065\ufff0\U000e0000",
		"deprecated formats": "\u206a\u206f", "direction": "\u061c\u200e\u200f\u202a\u202e\u2066\u2069",
		"annotations": "\ufff9\ufffb", "shorthand": "\U0001bca0", "music": "\U0001d173", "tags": "\U000e0020\U000e007f",
		"selectors 17 on": "\U000e0100\U000e01ef", "separators": "\u2028\u2029", "controls": "\x00\x1b\x7f\u0085\u009b",
	} {
		for _, r := range runes {
			if !visible.Hidden(r) {
				t.Errorf("%s: %U passes", what, r)
			}
		}
	}
	for what, text := range map[string]string{
		"ASCII": "~ !", "blanks": "\u00a0\u2009\u3000", "combining marks": "e\u0301 n\u0303 \u05b8 \u0e31",
		"emoji":               "\u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1f3\U0001f1f1",
		"emoji with a colour": "\U0001f44d\U0001f3fd", "keycap": "1\ufe0f\u20e3",
		"Persian": "می\u200cخواهم", "Sinhala": "ශ්\u200dරී", "Mongolian": "ᠠ\u180b", "Arabic signs": "\u0600\u06dd",
		"hyphens and quotes": "‐–—“”…", "replacement": "\ufffd", "mathematics": "∩\ufe00",
	} {
		if got := visible.Line(text); got != text {
			t.Errorf("%s: %q is %q", what, text, got)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for attack, want := range attacks {
		// Several bytes that are no UTF-8 may be one replacement or several.
		if got := visible.Text(attack); strings.TrimRight(got, "\ufffd") != strings.TrimRight(want, "\ufffd") {
			t.Errorf("%q: %q, want %q", attack, got, want)
		}
	}
	if got := visible.Text("a\n\tb"); got != "a\n\tb" {
		t.Errorf("lines: %q", got)
	}
	if got := visible.Line("a\n\tb\x1b"); got != "a  b\ufffd" {
		t.Errorf("line: %q", got)
	}
}

// TestWriter writes every attack in every division into two pieces.
func TestWriter(t *testing.T) {
	t.Parallel()
	for attack, want := range attacks {
		for cut := range len(attack) + 1 {
			var b bytes.Buffer
			w := visible.NewWriter(&b, true)
			for _, part := range []string{attack[:cut], attack[cut:]} {
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := b.String(); strings.TrimRight(got, "\ufffd") != strings.TrimRight(want, "\ufffd") &&
				!strings.HasPrefix(attack, "cut rune") {
				t.Errorf("%q cut at %d: %q, want %q", attack, cut, got, want)
			}
		}
	}
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m": "\x1b[31mred\x1b[0m", "\x1b[1;31mx": "\x1b[1;31mx", "\x1b[31Hx": "\ufffd[31Hx",
		"\x1b[38;5;200;1;1mx": "\ufffd[38;5;200;1;1mx", "\x1b[": "\ufffd[",
	} {
		var b bytes.Buffer
		w := visible.NewWriter(&b, true)
		_, _ = w.Write([]byte(in))
		if b.String() != want {
			t.Errorf("%q: %q, want %q", in, b.String(), want)
		}
		b.Reset()
		_, _ = visible.NewWriter(&b, false).Write([]byte(in))
		if strings.Contains(b.String(), "\x1b") {
			t.Errorf("%q without colours: %q", in, b.String())
		}
	}
}

// FuzzText: what Text and Line return is UTF-8 without a hidden rune, has as many lines, stays when
// it is filtered again, and is the text itself where that has nothing to hide.
func FuzzText(f *testing.F) {
	for attack, want := range attacks {
		f.Add(attack)
		f.Add(want)
	}
	f.Fuzz(func(t *testing.T, in string) {
		text, line := visible.Text(in), visible.Line(in)
		clean := utf8.ValidString(in)
		for _, r := range in {
			clean = clean && (!visible.Hidden(r) || r == '\n' || r == '\t')
		}
		if clean && text != in || visible.Text(text) != text || visible.Line(line) != line ||
			strings.Count(text, "\n") != strings.Count(in, "\n") || !utf8.ValidString(text+line) {
			t.Errorf("%q: %q, %q", in, text, line)
		}
		for _, r := range line {
			if visible.Hidden(r) {
				t.Errorf("%q: %q has %U", in, line, r)
			}
		}
	})
}

func FuzzWriter(f *testing.F) {
	for attack := range attacks {
		f.Add([]byte(attack), 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		cut = min(max(cut, 0), len(text))
		var b bytes.Buffer
		w := visible.NewWriter(&b, false)
		_, _ = w.Write(text[:cut])
		_, _ = w.Write(text[cut:])
		if !utf8.Valid(b.Bytes()) {
			t.Errorf("%q: %q is no UTF-8", text, b.Bytes())
		}
		for _, r := range b.String() {
			if visible.Hidden(r) && r != '\n' && r != '\t' {
				t.Errorf("%q: %q is left", text, r)
			}
		}
	})
}
