package advice

import "strings"

// command is one simple command of a shell: its words without quotes, and the file that its output goes to.
type command struct {
	words  []string
	target string // behind > or >>
	piped  bool   // its input is the output of the command before
}

// name is the first word without its directory: /sbin/sysctl is sysctl.
func (c command) name() string {
	if len(c.words) == 0 {
		return ""
	}
	first := c.words[0]
	return strings.ToLower(strings.TrimSuffix(first[strings.LastIndexAny(first, `/\`)+1:], ".exe"))
}

// splitCommands takes a line of a shell apart as far as tuning advice needs: quotes, comments, ; & && || |, and output to a file.
// Nothing is expanded: $IF stays the name of an interface that is not known.
//
// A backslash before a letter or a digit stays, because in our texts it parts the keys of a registry and escapes nothing.
func splitCommands(text string) []command {
	var all []command
	var now command
	var word strings.Builder
	inWord, redirect := false, false
	endWord := func() {
		if !inWord {
			return
		}
		if redirect {
			now.target, redirect = word.String(), false
		} else {
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
		now, redirect = command{piped: piped}, false
	}
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == '\\' && i+1 < len(text) && !alphanumeric(text[i+1]) && text[i+1] != '{' && text[i+1] != '\\':
			i++
			word.WriteByte(text[i])
			inWord = true
		case c == ' ' || c == '\t':
			endWord()
		case c == '#' && !inWord:
			endCommand(false)
			return all
		case c == '>':
			// "2>" sends the errors away; the number is no word of the command.
			if w := word.String(); inWord && (w == "1" || w == "2") {
				word.Reset()
				inWord = false
			}
			endWord()
			redirect = true
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

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// before are the words that may stand in front of a command without changing what it sets.
var before = map[string]bool{"sudo": true, "do": true, "then": true, "else": true, "exec": true, "nohup": true, "time": true, "{": true, "(": true, "doas": true, "pfexec": true}

// unwrap drops such words.
func (c command) unwrap() command {
	for len(c.words) > 1 && before[c.name()] {
		c.words = c.words[1:]
		for len(c.words) > 1 && strings.HasPrefix(c.words[0], "-") {
			c.words = c.words[1:] // sudo -n
		}
	}
	return c
}
