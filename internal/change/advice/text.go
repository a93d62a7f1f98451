package advice

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/pattern"
)

// MaxBytes is the longest text that is read. The longest collections of settings that users pass
// around have some hundred kilobytes.
const MaxBytes = 1 << 20

// ErrNotText is the answer to a file that holds no text: a program, an image, an archive.
var ErrNotText = errors.New("not a text")

// ErrTooLong is the answer to a text of more than MaxBytes.
var ErrTooLong = errors.New("longer than 1 MiB, which no list of settings is")

// decode returns the text of a file.
//
// regedit exports UTF-16 with a byte order mark. Bytes that are not UTF-8 come from older Latin
// encodings, in comments; one replacement character for each keeps the rest readable. Typographic
// quotes and dashes come from web pages, and their meaning is clear.
func decode(data []byte) (string, error) {
	if len(data) > MaxBytes {
		return "", ErrTooLong
	}
	text := string(data)
	// The mark alone decides: UTF-16 without one is full of zero bytes, which no text has, and is
	// refused as such below. Source: RFC 2781, section 3.
	switch {
	case strings.HasPrefix(text, "\xff\xfe"):
		text = fromUTF16(data[2:], binary.LittleEndian)
	case strings.HasPrefix(text, "\xfe\xff"):
		text = fromUTF16(data[2:], binary.BigEndian)
	}
	text = strings.TrimPrefix(text, "\ufeff")
	// Escape is allowed because transcripts of terminals contain colours, form feed because RFCs
	// and old manuals separate pages with it.
	strange := 0
	for _, r := range text {
		switch {
		case r == 0:
			return "", ErrNotText
		case r == utf8.RuneError, unicode.IsControl(r) && !strings.ContainsRune("\n\r\t\f\x1b", r):
			strange++
		}
	}
	// A tenth is more than a text in an old encoding has in its lines of settings, and far less
	// than any compressed file.
	if strange > 0 && strange*10 > utf8.RuneCountInString(text) {
		return "", ErrNotText
	}
	// Lines end in LF, CR LF (Windows, and pages over HTTP) or CR alone (Mac OS before 10). Copying
	// from a web page leaves a no-break space after an equals sign, which makes sysctl(8) refuse a
	// line that looks right.
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u00a0", " ", "“", `"`, "”", `"`, "‘", "'", "’", "'", "–",
		"-", "（", " (", "）", ") ").Replace(text)
	return strings.ToValidUTF8(text, "\ufffd"), nil
}

// fromUTF16 drops half a unit at the end, and returns the replacement character for half a pair: a
// truncated file is read as far as possible.
func fromUTF16(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}

// cmdletLine is the beginning of a command of PowerShell, whose lines go on behind a backquote.
var cmdletLine = pattern.New(`(?i)^(?:set|new|enable|disable)-\w+\s`)

// commandOfBatch is the beginning of a command of a batch file that has several arguments.
var commandOfBatch = pattern.New(`(?i)^@?(?:reg(?:\.exe)?|netsh|powershell)\s`)

// line is one logical line: lines that end in a backslash go on in the next one.
type line struct {
	number int
	text   string
	indent int // blanks before the text; a tab is one
}

// logicalLines joins what belongs together, and counts the lines of the text as an editor does.
//
// The backslash is the shell's (POSIX, 2.2.1); neither procps nor systemd joins lines of
// sysctl.conf. But pages break long commands with it, and no value of a setting ends in one. A
// comment does not continue on the next line: "# see C:\" must not hide a setting below it. A root
// prompt looks like a comment; the command after it shows the difference.
func logicalLines(text string) (all []line, physical int) {
	if text == "" {
		return nil, 0
	}
	var parts []string // of the logical line that is being read
	first, indent := 0, 0
	end := func() {
		if len(parts) > 0 {
			all = append(all, line{first, strings.TrimSpace(strings.Join(parts, " ")), indent})
			parts = nil
		}
	}
	for _, t := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		physical++
		if len(parts) == 0 {
			first, indent = physical, len(t)-len(strings.TrimLeft(t, " \t"))
		}
		part, goesOn := strings.CutSuffix(strings.TrimSpace(t), `\`)
		if !goesOn && (len(parts) > 0 || cmdletLine.MatchString(part)) {
			part, goesOn = strings.CutSuffix(part, " `")
		}
		if !goesOn && commandOfBatch.MatchString(strings.Join(parts, " ")+part) { // a caret, in a batch file
			part, goesOn = strings.CutSuffix(part, " ^")
		}
		comment := len(parts) == 0 && isComment(part)
		parts = append(parts, strings.TrimSpace(part))
		if !goesOn || comment {
			end()
		}
	}
	end()
	return all, physical
}

// isComment reports whether a line only explains, in any of the languages that are read here.
func isComment(text string) bool {
	if strings.HasPrefix(text, ";") || strings.HasPrefix(text, "//") {
		return true
	}
	rest, ok := strings.CutPrefix(text, "#")
	if !ok {
		return false
	}
	commands := splitCommands(rest)
	return len(commands) == 0 || commandTable(commands[0].unwrap().name()) == nil
}
