package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// command is one simple command of a shell: its words without quotes, and the file that its output
// goes to.
type command struct {
	words  []string
	target string // behind > or >>
	piped  bool   // its input is the output of the command before
}

// name returns the first word without its directory and in small letters: /sbin/sysctl is sysctl,
// and NETSH.EXE is netsh, since Windows ignores case.
func (c command) name() string {
	if len(c.words) == 0 {
		return ""
	}
	first := strings.TrimLeft(c.words[0], "@(") // a batch file: do not print this line
	return strings.ToLower(strings.TrimSuffix(first[strings.LastIndexAny(first, `/\`)+1:], ".exe"))
}

// splitCommands splits a line of a shell as far as tuning advice needs: quotes, comments, ; & && ||
// |, and output to a file. It expands nothing: $IF stays the name of an unknown interface.
//
// A backslash before a letter or a digit stays: in these texts it separates the keys of a registry
// and escapes nothing.
func splitCommands(text string) []command {
	var all []command
	var now command
	var word strings.Builder
	inWord, redirect, errors := false, false, false
	endWord := func() {
		if !inWord {
			return
		}
		switch {
		case errors: // 2>/dev/null behind > FILE, which stays the target
			redirect, errors = false, false
		case redirect:
			now.target, redirect = word.String(), false
		default:
			now.words = append(now.words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func(piped bool) {
		endWord()
		if len(now.words) > 0 {
			all = append(all, now)
		}
		now, redirect, errors = command{piped: piped}, false, false
	}
	// One pass, byte by byte: every special character is ASCII, and UTF-8 bytes above it count as
	// letters of words.
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		// Nothing is special within quotes, not even the backslash, which double quotes of a real
		// shell treat specially: quoted registry keys are full of it.
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == '<' && placeholder.MatchString(text[i:min(len(text), i+longestPlace)]):
			name := placeholder.FindString(text[i:min(len(text), i+longestPlace)])
			word.WriteString(name) // <interface>, which the reader is to fill in
			i += len(name) - 1
			inWord = true
		// $(…) and $((…)) are part of a word, whatever is in them.
		case c == '$' && i+1 < len(text) && text[i+1] == '(':
			n := substitution(text[i:])
			word.WriteString(text[i : i+n])
			i += n - 1
			inWord = true
		case c == '\\' && i+1 < len(text) && !alphanumeric(text[i+1]) && text[i+1] != '{' && text[i+1] != '\\':
			i++
			word.WriteByte(text[i])
			inWord = true
		case c == ' ' || c == '\t':
			endWord()
		// A number sign begins a comment only at the start of a word (POSIX, 2.3): eth0#1 is a
		// name.
		case c == '#' && !inWord:
			endCommand(false)
			return all
		case c == '>':
			// "2>" redirects errors; the number is not a word of the command.
			second := false
			if w := word.String(); inWord && (w == "1" || w == "2") {
				second = w == "2"
				word.Reset()
				inWord = false
			}
			endWord()
			redirect, errors = true, second
		// | passes output on, || does not. The command after ; && || or & may or may not run;
		// advice means that it runs.
		case c == '|':
			pipe := i+1 >= len(text) || text[i+1] != '|'
			endCommand(pipe)
		case c == '&' && redirect:
			word.WriteByte(c) // >&2
			inWord = true
		case c == ';' || c == '&':
			endCommand(false)
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	endCommand(false)
	return all
}

const longestPlace = 80 // bytes of such a word

// placeholder is a word that a page leaves to its readers.
var placeholder = pattern.New(`^<[A-Za-z][\w -]*>`)

// substitution returns the length of the $(…) that a text begins with; 1 if nothing closes it.
func substitution(text string) int {
	const longest = 400 // so that a line of nothing else is read in one pass
	depth := 0
	for i := 1; i < len(text) && i < longest; i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 1
}

// alphanumeric considers ASCII only, as the words of the shell do.
func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// before are words that may come before a command without changing its settings: words of the
// shell's grammar, and programs that run another one with more rights (pfexec is Solaris's sudo) or
// in another way.
var before = setOf(`do then else if elif while until { ( ! sudo doas pfexec exec nohup time`)

// unwrap drops such words, and the options between them and the command. The value of an option
// (sudo -u root) then stands where the command would, and the line is not read: better than reading
// it wrongly.
func (c command) unwrap() command {
	for len(c.words) > 1 && (before[c.name()] || c.words[0] == "RUN") { // RUN of a Dockerfile
		c.words = c.words[1:]
		for len(c.words) > 1 && strings.HasPrefix(c.words[0], "-") {
			c.words = c.words[1:] // sudo -n
		}
	}
	return c
}
