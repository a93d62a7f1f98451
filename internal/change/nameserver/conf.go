package nameserver

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kind is the program of a name server, by its name.
type Kind string

// The programs.
const (
	Named   Kind = "named"
	Unbound Kind = "unbound"
	Kresd   Kind = "kresd"
)

// Unset is the value of an option that no file sets.
const Unset = "unset"

// Workers is the option of BIND's command line (-n) that says how many threads serve queries. Files
// do not have it.
const Workers = "workers"

// mark ends every line that Write inserts.
const mark = "linerate"

// waitForServer bounds how long a server may take to end, to come back, or to answer.
const waitForServer = 30 * time.Second

// Bounds of a configuration.
const (
	mostFiles = 200
	mostBytes = 8 << 20 // of one file
)

// span is one place in one file.
type span struct {
	file       string
	begin, end int
}

// layout is what a configuration says about one option.
type layout struct {
	values []span // of each line that sets it, in order
	insert span   // where a new line goes; an empty span
	texts  map[string][]byte
	again  int      // files that were included another time
	open   []string // the files that are being read, each included by the one before
}

// scan finds an option.
func scan(kind Kind, path, option string) (*layout, error) {
	l := &layout{texts: map[string][]byte{}}
	var err error
	switch kind {
	case Named:
		err = l.named(path, path, option)
	case Unbound:
		err = l.unbound(path, new(bool), option)
	default:
		err = l.kresd(path, option)
	}
	return l, err
}

// text reads a file, which counts as open until close. A file may be included several times, but
// must not include itself.
func (l *layout) text(path string) ([]byte, error) {
	if slices.Contains(l.open, path) {
		return nil, fmt.Errorf("read %s: it includes itself", path)
	}
	l.open = append(l.open, path)
	if b, ok := l.texts[path]; ok {
		if l.again++; l.again > mostFiles {
			return nil, fmt.Errorf("read %s: more than %d files are included", path, mostFiles)
		}
		return b, nil
	}
	if len(l.texts) == mostFiles {
		return nil, fmt.Errorf("read %s: more than %d files are included", path, mostFiles)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostBytes {
		return nil, fmt.Errorf("read %s: %w: not a file of up to %d bytes", path, fs.ErrInvalid, mostBytes)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l.texts[path] = b
	return b, nil
}

func (l *layout) close() { l.open = l.open[:len(l.open)-1] }

// included returns the files that an include names, which may be a pattern (seen with BIND 9.18.49
// and Unbound 1.17.1). A name without a file stays: reading it is the error.
func included(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("include %s: %w", pattern, err)
	}
	slices.Sort(files)
	return files, nil
}

// token is a word, a quoted string or one of { } ; in named.conf.
type token struct {
	begin, end int
	text       string // a string without its quotes
}

// namedTokens splits a file of named(8), and skips its three kinds of comments.
func namedTokens(b []byte) []token {
	var all []token
	s := string(b)
	for i := 0; i < len(s); {
		rest := s[i:]
		switch c := s[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '#' || strings.HasPrefix(rest, "//"):
			i += lengthTo(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			i += 2 + lengthTo(rest[2:], "*/")
		case c == '"':
			end := i + 1
			for end < len(s) && s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(s))
			all = append(all, token{i, min(end+1, len(s)), s[i+1 : end]})
			i = end + 1
		case strings.IndexByte("{};", c) >= 0:
			all = append(all, token{i, i + 1, string(c)})
			i++
		default:
			end := i + 1
			for end < len(s) && strings.IndexByte(" \t\r\n{};\"#", s[end]) < 0 &&
				!strings.HasPrefix(s[end:], "//") && !strings.HasPrefix(s[end:], "/*") {
				end++
			}
			all = append(all, token{i, end, s[i:end]})
			i = end
		}
	}
	return all
}

// lengthTo returns how long a text is up to and including a mark, or at all.
func lengthTo(s, mark string) int {
	if at := strings.Index(s, mark); at >= 0 {
		return at + len(mark)
	}
	return len(s)
}

// named finds a statement of the block options.
func (l *layout) named(main, path, option string) error {
	b, err := l.text(path)
	if err != nil {
		return err
	}
	defer l.close()
	all := namedTokens(b)
	depth, inOptions := 0, false
	for i := 0; i < len(all); i++ {
		first := i == 0 || strings.Contains("{};", all[i-1].text) && all[i-1].end-all[i-1].begin == 1
		switch t := all[i]; {
		case t.text == "{" && t.end-t.begin == 1:
			depth++
			if depth == 1 && i > 0 && all[i-1].text == "options" {
				inOptions = true
				l.insert = span{path, t.end, t.end}
			}
		case t.text == "}" && t.end-t.begin == 1:
			depth--
			inOptions = inOptions && depth > 0
		case first && t.text == "include" && i+1 < len(all) && (depth == 0 || inOptions && depth == 1):
			name := all[i+1].text
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(main), name)
			}
			if depth > 0 { // options may be in a file of its own; other files hold keys and zones
				continue
			}
			files, err := included(name)
			if err != nil {
				return fmt.Errorf("read %s: %w", path, err)
			}
			for _, f := range files {
				if err := l.named(main, f, option); err != nil {
					return err
				}
			}
		case first && inOptions && depth == 1 && t.text == option:
			end := i + 1
			for end < len(all) && all[end].text != ";" && all[end].text != "{" {
				end++
			}
			if end == i+1 || end == len(all) || all[end].text == "{" {
				return fmt.Errorf("read %s: %w: %s has no value of one line", path, fs.ErrInvalid, option)
			}
			l.values = append(l.values, span{path, all[i+1].begin, all[end-1].end})
		}
	}
	return nil
}

// line is one line of a file with its comment taken off.
type line struct {
	begin, end int // without the comment, the line end, and blanks around
	text       string
}

// lines splits a file; a comment begins with the mark outside of quotes.
func lines(b []byte, comment string) []line {
	var all []line
	at := 0
	for raw := range strings.Lines(string(b)) {
		text, quote := raw, byte(0)
		for i := 0; i < len(raw); i++ {
			if quote == 0 && strings.HasPrefix(raw[i:], comment) {
				text = raw[:i]
				break
			}
			if c := raw[i]; quote != 0 && c == quote {
				quote = 0
			} else if quote == 0 && (c == '"' || c == '\'') {
				quote = c
			}
		}
		body := strings.TrimSpace(text)
		begin := at + len(text) - len(strings.TrimLeft(text, " \t"))
		all = append(all, line{begin, begin + len(body), body})
		at += len(raw)
	}
	return all
}

// unbound finds an option of the clause server. The clause goes on into included files.
func (l *layout) unbound(path string, inServer *bool, option string) error {
	b, err := l.text(path)
	if err != nil {
		return err
	}
	defer l.close()
	for _, x := range lines(b, "#") {
		name, value, ok := strings.Cut(x.text, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok:
		case name == "include" || name == "include-toplevel":
			files, err := included(strings.Trim(value, `"'`))
			if err != nil {
				return fmt.Errorf("read %s: %w", path, err)
			}
			inside := *inServer
			if name == "include-toplevel" {
				inside = false
			}
			for _, f := range files {
				if err := l.unbound(f, &inside, option); err != nil {
					return err
				}
			}
			*inServer = inside
		case value == "":
			*inServer = name == "server"
			if *inServer && l.insert.file == "" {
				l.insert = span{path, x.end, x.end}
			}
		case *inServer && name == option:
			l.values = append(l.values, span{path, x.end - len(value), x.end})
		}
	}
	return nil
}

// kresd finds an assignment NAME = VALUE or a call NAME(VALUE) of one line.
func (l *layout) kresd(path, option string) error {
	b, err := l.text(path)
	if err != nil {
		return err
	}
	defer l.close()
	l.insert = span{path, len(b), len(b)}
	for _, x := range lines(b, "--") {
		if option == "cache.size" && l.insert.begin == len(b) && forgottenBySize(x.text) {
			// A line inside of a block would be set only with that.
			l.insert = span{path, x.begin, x.begin}
			if x.begin > 0 && b[x.begin-1] != '\n' {
				l.insert.file = ""
			}
		}
		rest, ok := strings.CutPrefix(x.text, option)
		if !ok {
			continue
		}
		body := strings.TrimSpace(rest)
		value, opened := strings.CutPrefix(body, "(")
		if opened {
			value, ok = strings.CutSuffix(value, ")")
		} else if value, ok = strings.CutPrefix(body, "="); ok && strings.HasPrefix(value, "=") {
			ok = false // a comparison
		}
		if value = strings.TrimSpace(value); ok && value != "" {
			begin := x.begin + strings.LastIndex(x.text, value)
			l.values = append(l.values, span{path, begin, begin + len(value)})
		}
	}
	return nil
}

// forgottenBySize reports whether a line sets a time to live of Knot Resolver's cache. A later
// cache.size opens the cache again and puts both times back to their defaults (seen with 5.6.0), so
// it must stand before.
func forgottenBySize(text string) bool {
	return strings.HasPrefix(text, "cache.max_ttl") || strings.HasPrefix(text, "cache.min_ttl")
}

// value returns the text of the line that counts.
func (l *layout) value() string {
	if len(l.values) == 0 {
		return Unset
	}
	at := l.values[len(l.values)-1]
	return string(l.texts[at.file][at.begin:at.end])
}

// statement is the line that sets an option.
func statement(kind Kind, option, value string) string {
	switch {
	case kind == Named:
		return "\n\t" + option + " " + value + "; // " + mark
	case kind == Unbound:
		return "\n\t" + option + ": " + value + " # " + mark
	case option == "cache.size":
		return "\n" + option + " = " + value + " -- " + mark + "\n"
	}
	return "\n" + option + "(" + value + ") -- " + mark + "\n"
}

// edit returns the file that holds an option, and its bytes with another value.
func (l *layout) edit(kind Kind, option, value string) (file string, text []byte, err error) {
	present := l.value()
	if present == Unset {
		if value == Unset {
			return "", nil, nil
		}
		at := l.insert
		if at.file == "" {
			if kind == Kresd {
				return "", nil, fmt.Errorf("%w: %s would undo the times to live that a block sets before it: set it yourself, "+
					"in front of them", fs.ErrInvalid, option)
			}
			return "", nil, fmt.Errorf("%w: the configuration has no block for options", fs.ErrNotExist)
		}
		return at.file, splice(l.texts[at.file], at, statement(kind, option, value)), nil
	}
	at := l.values[len(l.values)-1]
	before := l.texts[at.file]
	if strings.Join(strings.Fields(present), " ") != present {
		return "", nil, fmt.Errorf("%w: the value %q of %s has unusual blanks, which could not be put back", fs.ErrInvalid,
			present, option)
	}
	if !isPlain(present) {
		return "", nil, fmt.Errorf("%w: the value %q of %s has signs that linerate does not write, so it could not be put "+
			"back", fs.ErrInvalid, present, option)
	}
	if value != Unset {
		return at.file, splice(before, at, value), nil
	}
	inserted := statement(kind, option, present)
	for begin := max(0, at.begin-len(inserted)); begin <= at.begin; begin++ {
		if strings.HasPrefix(string(before[begin:]), inserted) {
			return at.file, splice(before, span{at.file, begin, begin + len(inserted)}, ""), nil
		}
	}
	return "", nil, fmt.Errorf("%w: the line of %s is not one that linerate wrote, so linerate does not remove it",
		fs.ErrInvalid, option)
}

// isPlain reports whether a text is one value of an option: a word or some, with or without quotes
// around.
func isPlain(value string) bool {
	if n := len(value); n > 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	const signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .*_-%"
	return value != "" && strings.Trim(value, signs) == "" && !strings.Contains(value, "--")
}

// WithLine returns lines of a configuration with one option set, in the place of the line that set
// it before, or at the end.
func WithLine(kind Kind, lines []string, option, value string) []string {
	text, _, _ := strings.Cut(strings.TrimSpace(statement(kind, option, value)), mark)
	text = strings.TrimRight(text, " /#-")
	kept := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		rest, ok := strings.CutPrefix(l, option)
		return ok && (rest == "" || strings.ContainsRune(" :(=", rune(rest[0])))
	})
	return append(kept, text)
}

func splice(b []byte, at span, text string) []byte {
	return slices.Concat(b[:at.begin], []byte(text), b[at.end:])
}
