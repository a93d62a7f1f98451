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

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// header is the first line of every capture. A later format changes only the number, so that this
// version can distinguish a later capture from an unrelated file.
const header = "linerate capture 1"

// explanation follows the header, for a user who opens a capture in an editor.
const explanation = `# The network side of one host. Addresses, names, serial numbers and identifiers are replaced,
# equal ones by equal replacements.
# Read it with: linerate inspect --from FILE`

// The bounds of a capture. A host with 64 queues and 40 VLANs has 0.4 MiB in 3,500 entries; the
// bounds stop files that were made large on purpose.
const (
	maxBytes   = 64 << 20
	maxEntries = 100_000
	maxName    = 1024 // bytes of a whole path
	maxDepth   = 40   // elements of a path; the kernel's own device paths have about twenty
)

// ErrFormat reports that a file is no capture, or a damaged or malicious one.
var ErrFormat = errors.New("not a usable capture")

// operators separate the name of an entry from its content.
const (
	opLine   = "="  // a file of one line
	opQuoted = "==" // a file of exactly these bytes, as a Go string literal
	opLines  = ":"  // a file of the lines below, each behind a tab
	opLink   = "->" // a symbolic link
	opEmpty  = "/"  // an empty directory
)

// WriteTo writes the capture in its text form, which the package comment describes. It implements
// io.WriterTo.
func (c *Capture) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s\n", header, explanation)
	// Sorted, so that the same host gives the same text: users compare captures and keep them in
	// version control. A directory's own entries stay together below one heading, so the directory
	// is the first sort key.
	entries := slices.Clone(c.entries)
	sorting.Func(entries, func(a, b hostfs.Entry) int {
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
	// In one write: a writer that fails halfway leaves at most a file without its last line, which
	// Read refuses.
	n, err := b.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("write capture: %w", err)
	}
	return n, nil
}

// writeEntry takes the shortest form that preserves every byte. A quoted text can hold anything, so
// that case comes before the plain forms that could not hold it.
func writeEntry(b *bytes.Buffer, e hostfs.Entry) {
	name := word(path.Base(e.Name))
	text := string(e.Content)
	body, whole := strings.CutSuffix(text, "\n")
	switch {
	case e.Directory:
		fmt.Fprintf(b, "%s %s\n", name, opEmpty)
	case e.Target != "":
		fmt.Fprintf(b, "%s %s %s\n", name, opLink, word(e.Target))
		// No newline at the end, or something unprintable: only a quoted text preserves that.
	case !whole || !plain(text):
		fmt.Fprintf(b, "%s %s %s\n", name, opQuoted, strconv.Quote(text))
	case body == "":
		fmt.Fprintf(b, "%s %s\n", name, opLine)
		// A tab before every line, so that none of them looks like an entry, a heading or the end.
	case strings.Contains(body, "\n"):
		fmt.Fprintf(b, "%s %s\n", name, opLines)
		for line := range strings.Lines(text) {
			b.WriteString("\t" + line)
		}
	// Editors and mail programs remove blanks at the ends of a line.
	case strings.TrimSpace(body) != body:
		fmt.Fprintf(b, "%s %s %s\n", name, opQuoted, strconv.Quote(text))
	default:
		fmt.Fprintf(b, "%s %s %s\n", name, opLine, body)
	}
}

// plain reports whether text survives unquoted: text that an editor or a mail program would change
// is quoted.
func plain(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}

// word returns a name, quoted if it would be misread.
func word(name string) string {
	// Names that the reader would misread.
	if name == "" || name == "end" || !plain(name) || strings.ContainsAny(name, " \t\n\"\\]") ||
		strings.ContainsAny(name[:1], "#[") {
		return strconv.Quote(name)
	}
	return name
}

// Read reads a capture from an untrusted source. It refuses, with the line number and ErrFormat,
// everything that WriteTo could not have written: a file that ends early, paths and links that
// leave the archive, entries below a link or twice, more than 64 MiB or 100,000 entries. The error
// does not name the file; the caller does.
func Read(r io.Reader) (*Capture, error) {
	// One byte more than the limit, to distinguish a file of exactly that size from a longer one.
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

// parser reads the lines of a capture one by one. The whole text is in memory, bounded by Read. The
// result is of the same order, since every entry takes at least three bytes of text.
type parser struct {
	rest    string
	number  int // of the latest line, from 1
	dir     string
	entries []hostfs.Entry
	kind    map[string]kind // of every path so far, including directories between
}

// next returns a line without its newline. A last line without a newline shows an incomplete file,
// and is not returned.
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

// parse reads the whole file. Its errors are the second half of a sentence; Read adds the line
// number before them.
func (p *parser) parse() error {
	// The first line identifies a file of another kind, even gigabytes without a newline, and the
	// error says so.
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
			return errors.New("the file is incomplete: the line \"end\" is missing")
		case line == "end":
			if strings.TrimSpace(p.rest) != "" {
				return errors.New("something follows the line \"end\"")
			}
			return nil
		case line == "" || line[0] == '#':
		case line[0] == '[':
			dir, closed := strings.CutSuffix(line[1:], "]")
			if !closed {
				return errors.New("a heading without its closing bracket")
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
			return e, errors.New("a quoted text without a valid end")
		}
		e.Content = []byte(text)
	case opLines:
		e.Content = p.lines()
	case opLink:
		if e.Target, err = unword(value); err == nil && e.Target == "" {
			err = errors.New("a link without a target")
		}
	case opEmpty:
		e.Directory = true
	default:
		err = fmt.Errorf("%.20q between name and content", op)
	}
	return e, err
}

// lines takes the lines that begin with a tab.
func (p *parser) lines() []byte {
	var b []byte
	for strings.HasPrefix(p.rest, "\t") {
		line, ok := p.next()
		if !ok {
			break // The caller finds the missing end when it asks for the next line.
		}
		b = append(append(b, line[1:]...), '\n')
	}
	return b
}

// cutWord cuts a name, quoted or not, off the front of a line.
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

// unword undoes word for a name that takes the rest of a line.
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

// add adds an entry after checking it against all the others.
func (p *parser) add(e hostfs.Entry) error {
	// The bounds are checked before anything is kept, so that they limit memory for any file.
	if len(p.entries) >= maxEntries {
		return fmt.Errorf("more than %d entries", maxEntries)
	}
	if !inside(e.Name) {
		return fmt.Errorf("the path %.80q is not valid inside a capture", e.Name)
	}
	if p.kind[e.Name] != 0 {
		return fmt.Errorf("%.80q occurs twice, or is also a directory", e.Name)
	}
	// Everything above an entry must be a directory: an entry below a link would be written
	// wherever the link leads. This is checked in both orders: a file cannot become a directory
	// later, nor a directory a file, because every directory above an entry is recorded here.
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
		// The reader of a capture follows no link out of it either. This check refuses the file at
		// once, since no genuine capture has such a link.
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

// inside reports whether a path is below an archive: clean, relative and of a sane size.
func inside(name string) bool {
	// ValidPath refuses "..", empty elements and a slash at either end. A backslash is a separator
	// on Windows, and a zero byte ends a name in C.
	return fs.ValidPath(name) && name != "." && len(name) <= maxName && strings.Count(name, "/") < maxDepth &&
		!strings.ContainsAny(name, "\x00\\")
}

// linkInside reports whether the target of a link, seen from the link's place, stays below the
// archive by its text. Links through other links could still lead out; the reader follows none out
// of the directory (os.Root).
func linkInside(e hostfs.Entry) bool {
	if path.IsAbs(e.Target) || len(e.Target) > maxName || strings.ContainsAny(e.Target, "\x00\\") {
		return false
	}
	to := path.Join(path.Dir(e.Name), e.Target)
	return to != ".." && !strings.HasPrefix(to, "../")
}
