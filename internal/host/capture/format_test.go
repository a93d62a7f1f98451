package capture

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// TestRoundTrip: any bytes and any names survive.
func TestRoundTrip(t *testing.T) {
	entries := []hostfs.Entry{
		{Name: "a", Content: []byte("one line\n")},
		{Name: "b", Content: []byte("")},
		{Name: "c", Content: []byte("\n")},
		{Name: "d", Content: []byte("no newline")},
		{Name: "e", Content: []byte("two\nlines\n")},
		{Name: "f", Content: []byte("\n\n\n")},
		{Name: "g", Content: []byte(" blanks around \n")},
		{Name: "h", Content: []byte{0, 1, 2, 0xff, '\n'}},
		{Name: "i", Content: []byte("carriage\r\nreturn\n")},
		{Name: "j", Content: []byte("end\n[x]\n# y\n= z\n")},
		{Name: "k/deep/er", Target: "../../a"},
		{Name: "k/with blank", Content: []byte("x\n")},
		{Name: "k/end", Content: []byte("x\n")},
		{Name: "k/[x]", Content: []byte("x\n")},
		{Name: "k/#x", Content: []byte("x\n")},
		{Name: "k/0000:03:00.0", Target: "../a b"},
		{Name: "k/empty", Directory: true},
		{Name: "k/q\"uote", Content: []byte("\t\n")},
		{Name: "k/tab]le dir/x", Content: []byte("ümläut → €\n")},
	}
	c := &Capture{entries: entries}
	text := c.Bytes()
	back, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	byName := func(a, b hostfs.Entry) int { return strings.Compare(a.Name, b.Name) }
	got := slices.SortedFunc(slices.Values(back.entries), byName)
	want := slices.SortedFunc(slices.Values(entries), byName)
	if diff := cmp.Diff(asText(want), asText(got)); diff != "" {
		t.Errorf("(-written +read):\n%s\n%s", diff, text)
	}
}

// asText makes nothing and no bytes look the same, which they are in a file.
func asText(entries []hostfs.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%q %q %q %v", e.Name, e.Content, e.Target, e.Directory))
	}
	return out
}

// TestRefused: Read refuses malformed captures with a sentence that has the line and the reason.
func TestRefused(t *testing.T) {
	file := func(body string) string { return header + "\n" + body + "end\n" }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", `it does not begin with the line "linerate capture 1"`},
		{"another file", "PK\x03\x04 and so on", "does not begin"},
		{"no newline", header, "does not begin"},
		{"another version", "linerate capture 2\nend\n", "made by another version"},
		{"cut off", header + "\n[a]\nb = c\n", `the line "end" is missing`},
		{"cut in a line", header + "\n[a]\nb = c", `the line "end" is missing`},
		{"cut in lines", header + "\n[a]\nb :\n\tc\n\td", `the line "end" is missing`},
		{"more", file("") + "x\n", "something follows"},
		{"no heading", file("b = c\n"), "before the first heading"},
		{"open heading", file("[a\n"), "without its closing bracket"},
		{"no operator", file("[a]\nb c d\n"), `"c" between name and content`},
		{"up", file("[../a]\nb = c\n"), "not valid inside"},
		{"absolute", file("[/etc]\nshadow = c\n"), "not valid inside"},
		{"dots", file("[a]\n.. = c\n"), `the name ".."`},
		{"slash", file("[a]\nb/c = c\n"), `the name "b/c"`},
		{"backslash", file("[a]\n\"b\\\\c\" = c\n"), "not valid inside"},
		{"nul", file("[a]\n\"b\\x00\" = c\n"), "not valid inside"},
		{"deep", file("[" + strings.Repeat("a/", 50) + "a]\nb = c\n"), "not valid inside"},
		{"long", file("[" + strings.Repeat("a", 2000) + "]\nb = c\n"), "not valid inside"},
		{"twice", file("[a]\nb = c\nb = d\n"), "line 4: \"a/b\" occurs twice"},
		{"file and directory", file("[a]\nb = c\n[a/b]\nc = d\n"), "no directory"},
		{"directory and file", file("[a/b]\nc = d\n[a]\nb = c\n"), "twice"},
		{"through a link", file("[a]\nb -> c\n[a/b]\nc = d\n"), "no directory"},
		{"link up", file("[a]\nb -> ../../etc\n"), "leads out"},
		{"link absolute", file("[a]\nb -> /etc/shadow\n"), "leads out"},
		{"link to nothing", file("[a]\nb -> \n"), "a link without a target"},
		{"bad quotes", file("[a]\nb == \"c\n"), "without a valid end"},
		{"bad name", file("[a]\n\"b = c\n"), "a quoted name that does not end"},
		{"bad link", file("[a]\nb -> \"c\n"), "a quoted name that does not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text))
			if err == nil || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestBounds: a file made large on purpose ends in an error and does not fill the memory.
func TestBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString(header + "\n[a]\n")
	for i := range maxEntries + 1 {
		fmt.Fprintf(&b, "f%d =\n", i)
	}
	b.WriteString("end\n")
	if _, err := Read(strings.NewReader(b.String())); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "more than 100000 entries") {
		t.Errorf("error %v", err)
	}
	if _, err := Read(endless{}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("error %v", err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	copy(b, header+"\n")
	return len(b), nil
}

// FuzzRead: any text is refused, or is an archive that stays inside its directory and survives
// being written again.
func FuzzRead(f *testing.F) {
	f.Add(header + "\n[a]\nb = c\nd :\n\te\n\tf\ng -> ../a/b\nh /\ni == \"\\x00\"\nend\n")
	f.Add(header + "\n\n# x\n[\"a b\"]\n\"end\" -> b\nend\n")
	f.Add(header + "\n[a]\nb -> ../../..\nend\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("error %v", err)
			}
			return
		}
		for _, e := range c.entries {
			if !inside(e.Name) || e.Target != "" && !linkInside(e) {
				t.Errorf("%q -> %q leads out", e.Name, e.Target)
			}
		}
		back, err := Read(bytes.NewReader(c.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Bytes())
		}
		byName := func(a, b hostfs.Entry) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(c.entries, byName)
		slices.SortFunc(back.entries, byName)
		if diff := cmp.Diff(asText(c.entries), asText(back.entries)); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
