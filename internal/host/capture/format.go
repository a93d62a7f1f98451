package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// header is the first line of every capture. A later format changes the number and nothing else in
// it, so that a program of today can tell a file of tomorrow from a file that is none.
const header = "linerate capture 1"

// explanation stands below the header, for whoever opens a capture in an editor.
const explanation = `# What one host said of its network side. Addresses, names, serial numbers and identifiers are replaced, the same one by the same.
# Read it with: linerate inspect --from FILE`

// What a capture may be at most. A host with 64 queues and 40 VLANs has 0.4 MiB in 3,500 entries;
// the bounds are for files that somebody made to be large.
const (
	maxBytes   = 64 << 20
	maxEntries = 100_000
	maxName    = 1024 // bytes of a whole path
	maxDepth   = 40   // elements of a path; the kernel's own device paths have about twenty
)

// ErrFormat is in every error of Read that says that a file is no capture, or a damaged or
// dishonest one.
var ErrFormat = errors.New("not a usable capture")

// operators stand between the name of an entry and what it is.
const (
	opLine   = "="  // a file of one line
	opQuoted = "==" // a file of exactly these bytes, as a Go string literal
	opLines  = ":"  // a file of the lines below, each behind a tab
	opLink   = "->" // a symbolic link
	opEmpty  = "/"  // a directory with nothing in it
)

// WriteTo writes the capture in its text form; package comment: the format. It implements
// io.WriterTo.
func (c *Capture) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s\n", header, explanation)
	// Sorted, so that the same host gives the same text: captures are compared, and are kept in
	// version control. A directory's own entries stay together below one heading, so it is the
	// directory that is sorted by first.
	entries := slices.SortedFunc(slices.Values(c.entries), func(a, b hostfs.Entry) int {
		if byDirectory := strings.Compare(path.Dir(a.Name), path.Dir(b.Name)); byDirectory != 0 {
			return byDirectory
		}
		return strings.Compare(a.Name, b.Name)
	})
	for i, e := range entries {
		if dir := path.Dir(e.Name); i == 0 || dir != path.Dir(entries[i-1].Name) {
			fmt.Fprintf(&b, "\n[%s]\n", word(dir))
		}
		writeEntry(&b, e)
	}
	b.WriteString("\nend\n")
	// In one piece: a writer that fails halfway has then at most a file without its last line,
	// which Read refuses.
	n, err := b.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("write capture: %w", err)
	}
	return n, nil
}

// writeEntry takes the shortest form that gives every byte back. The order of the cases is that of
// what rules the others out: a quoted text can be anything, so it stands before the plain forms
// that could not hold it.
func writeEntry(b *bytes.Buffer, e hostfs.Entry) {
	name := word(path.Base(e.Name))
	text := string(e.Content)
	body, whole := strings.CutSuffix(text, "\n")
	switch {
	case e.Directory:
		fmt.Fprintf(b, "%s %s\n", name, opEmpty)
	case e.Target != "":
		fmt.Fprintf(b, "%s %s %s\n", name, opLink, word(e.Target))
		// No newline at the end, or something unprintable: nothing but a quoted text gives that
		// back.
	case !whole || !plain(text):
		fmt.Fprintf(b, "%s %s %s\n", name, opQuoted, strconv.Quote(text))
	case body == "":
		fmt.Fprintf(b, "%s %s\n", name, opLine)
		// A tab in front of every line, so that none of them can look like an entry, a heading or
		// the end.
	case strings.Contains(body, "\n"):
		fmt.Fprintf(b, "%s %s\n", name, opLines)
		for line := range strings.Lines(text) {
			b.WriteString("\t" + line)
		}
	// Blanks at the ends of a line are what editors and mail programs take away.
	case strings.TrimSpace(body) != body:
		fmt.Fprintf(b, "%s %s %s\n", name, opQuoted, strconv.Quote(text))
	default:
		fmt.Fprintf(b, "%s %s %s\n", name, opLine, body)
	}
}

// plain tells whether text survives as itself: what an editor or a mail program would change goes
// in quotes.
func plain(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}

// word gives a name as itself, or quoted where it would be taken for something else.
func word(name string) string {
	// Whatever the reader would take for something else at the place of a name.
	if name == "" || name == "end" || !plain(name) || strings.ContainsAny(name, " \t\n\"\\]") ||
		strings.ContainsAny(name[:1], "#[") {
		return strconv.Quote(name)
	}
	return name
}

// Read reads a capture that anybody may have made. It refuses, with the number of the line and
// ErrFormat, whatever WriteTo could not have written: a file that ends early, paths and links that
// leave the archive, entries below a link or twice, more than 64 MiB or 100,000 entries. The error
// does not name the file: whoever opened it does.
func Read(r io.Reader) (*Capture, error) {
	// One byte more than is allowed, so that a file of exactly the limit is told from a longer one.
	// The whole text at once: the parser cuts its lines out of it without copying, and it is
	// bounded.
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxBytes {
		return nil, fmt.Errorf("longer than %d MiB: %w", maxBytes>>20, ErrFormat)
	}
	p := parser{rest: string(b), kind: make(map[string]kind)}
	if err := p.parse(); err != nil {
		if p.number > 1 {
			return nil, fmt.Errorf("line %d: %w: %w", p.number, err, ErrFormat)
		}
		return nil, fmt.Errorf("%w: %w", err, ErrFormat)
	}
	return &Capture{entries: p.entries}, nil
}

// kind is what a path in an archive is.
type kind byte

const (
	isFile kind = iota + 1
	isLink
	isDirectory
)

// parser reads the lines of a capture one by one. All of the text is in memory already, bounded by
// Read; what it builds is of the same order, since every entry has taken at least three bytes of
// it.
type parser struct {
	rest    string
	number  int // of the line that was taken last, from 1
	dir     string
	entries []hostfs.Entry
	kind    map[string]kind // of every path so far, directories in between included
}

// next takes a line without its newline. A last line without one is a sign of a file cut off, and
// is not taken.
func (p *parser) next() (string, bool) {
	line, rest, ok := strings.Cut(p.rest, "\n")
	if !ok {
		return "", false
	}
	p.rest = rest
	p.number++
	// Mail programs write the line ends of Windows. Contents with carriage returns of their own are
	// quoted, so none is lost.
	return strings.TrimSuffix(line, "\r"), true
}

// parse reads the whole file. Its errors are the second half of a sentence that begins with the
// line; Read makes the first.
func (p *parser) parse() error {
	// A file of another kind, be it of gigabytes without a newline, is recognised by its first line
	// and told so in the words of the user.
	first, ok := p.next()
	if first != header {
		if ok && strings.HasPrefix(first, strings.TrimSuffix(header, "1")) {
			return fmt.Errorf("made by another version of linerate (%.40q, this one reads %q)", first, header)
		}
		p.number = 1
		return fmt.Errorf("it does not begin with the line %q", header)
	}
	for {
		line, ok := p.next()
		switch {
		case !ok:
			return errors.New("it is cut off: the line \"end\" is missing")
		case line == "end":
			if strings.TrimSpace(p.rest) != "" {
				return errors.New("something follows the line \"end\"")
			}
			return nil
		case line == "" || line[0] == '#':
		case line[0] == '[':
			dir, closed := strings.CutSuffix(line[1:], "]")
			if !closed {
				return errors.New("a heading without its bracket")
			}
			var err error
			if p.dir, err = unword(dir); err != nil {
				return err
			}
		default:
			e, err := p.entry(line)
			if err != nil {
				return err
			}
			if err := p.add(e); err != nil {
				return err
			}
		}
	}
}

// entry reads one entry, which begins with line.
func (p *parser) entry(line string) (hostfs.Entry, error) {
	name, rest, err := cutWord(line)
	if err != nil {
		return hostfs.Entry{}, err
	}
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return hostfs.Entry{}, fmt.Errorf("the name %.80q", name)
	}
	e := hostfs.Entry{Name: path.Join(p.dir, name)}
	if p.dir == "" {
		return e, errors.New("an entry before the first heading")
	}
	op, value, _ := strings.Cut(rest, " ")
	switch op {
	case opLine:
		e.Content = []byte(value + "\n")
	case opQuoted:
		text, err := strconv.Unquote(value)
		if err != nil {
			return e, errors.New("a quoted text that does not end as it should")
		}
		e.Content = []byte(text)
	case opLines:
		e.Content = p.lines()
	case opLink:
		if e.Target, err = unword(value); err == nil && e.Target == "" {
			err = errors.New("a link to nowhere")
		}
	case opEmpty:
		e.Directory = true
	default:
		err = fmt.Errorf("%.20q between name and content", op)
	}
	return e, err
}

// lines takes the lines behind a tab.
func (p *parser) lines() []byte {
	var b []byte
	for strings.HasPrefix(p.rest, "\t") {
		line, ok := p.next()
		if !ok {
			break // The missing end is found by whoever asks for the next line.
		}
		b = append(append(b, line[1:]...), '\n')
	}
	return b
}

// cutWord takes a name, quoted or not, off the front of a line.
func cutWord(line string) (name, rest string, err error) {
	if !strings.HasPrefix(line, `"`) {
		name, rest, _ = strings.Cut(line, " ")
		return name, rest, nil
	}
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", "", errors.New("a quoted name that does not end")
	}
	name, err = strconv.Unquote(quoted)
	return name, strings.TrimPrefix(line[len(quoted):], " "), err
}

// unword undoes word for what takes the rest of a line.
func unword(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		return text, nil
	}
	name, err := strconv.Unquote(text)
	if err != nil {
		return "", errors.New("a quoted name that does not end")
	}
	return name, nil
}

// add takes an entry in after having asked whether it can be what it says, beside all the others.
func (p *parser) add(e hostfs.Entry) error {
	// The bounds are asked before anything is kept, so that the memory taken is theirs whatever the
	// file says.
	if len(p.entries) >= maxEntries {
		return fmt.Errorf("more than %d entries", maxEntries)
	}
	if !inside(e.Name) {
		return fmt.Errorf("the path %.80q is none inside a capture", e.Name)
	}
	if p.kind[e.Name] != 0 {
		return fmt.Errorf("%.80q is there twice, or is a directory too", e.Name)
	}
	// What is above an entry is a directory and nothing else: an entry below a link would be
	// written wherever the link leads. Asked in both orders: a file cannot become a directory
	// later, nor a directory a file, because every directory above an entry is noted here.
	for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
		switch p.kind[dir] {
		case isFile, isLink:
			return fmt.Errorf("%.80q is below %.80q, which is no directory", e.Name, dir)
		}
		p.kind[dir] = isDirectory
	}
	switch {
	case e.Directory:
		p.kind[e.Name] = isDirectory
		// The reader of a capture follows no link out of it either. This refuses the file at once
		// and says so, as nobody honest makes one.
	case e.Target != "":
		if !linkInside(e) {
			return fmt.Errorf("the link %.80q leads out of the capture", e.Name)
		}
		p.kind[e.Name] = isLink
	default:
		p.kind[e.Name] = isFile
	}
	p.entries = append(p.entries, e)
	return nil
}

// inside tells whether a path is one below an archive: clean, relative and of a sane size.
func inside(name string) bool {
	// ValidPath refuses "..", empty elements and a slash at either end. A backslash is a separator
	// where Windows unpacks, and a zero byte ends a name where C does.
	return fs.ValidPath(name) && name != "." && len(name) <= maxName && strings.Count(name, "/") < maxDepth &&
		!strings.ContainsAny(name, "\x00\\")
}

// linkInside tells whether the target of a link, seen from where the link is, stays below the
// archive by its text. Links through other links could still lead elsewhere; whoever reads follows
// none out of the directory (os.Root).
func linkInside(e hostfs.Entry) bool {
	if path.IsAbs(e.Target) || len(e.Target) > maxName || strings.ContainsAny(e.Target, "\x00\\") {
		return false
	}
	to := path.Join(path.Dir(e.Name), e.Target)
	return to != ".." && !strings.HasPrefix(to, "../")
}
