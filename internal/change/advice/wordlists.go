package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// A program gives the words of a command in a list of strings, which may go on for several lines
// and may choose between two of them:
//
//	run(["netsh", "int", "tcp", "set", "global",
//	     "rss=enabled" if on else "rss=disabled"])

var (
	// listHead is the first word of such a list.
	listHead = pattern.New(`(?i)["'](?:(?:netsh|reg|sysctl|ethtool)(?:\.exe)?["']\s*,|` +
		`(?:ip["']\s*,\s*["']link|tc["']\s*,\s*["']qdisc)["'],)`)
	// madeWord is a word that a call makes of a text or a number, and templateWord one of JavaScript.
	madeWord = pattern.New(`(?:fmt\.Sprintf|strconv\.\w+|str|String|format!)\(` +
		`(?:("[^"]*")[^()]*|(\d+)|([A-Za-z_][\w.]*))\)`)
	templateWord = pattern.New("`([^`'\"]*)`")
	// listBehind is a list of words of its own behind the program.
	listBehind = pattern.New(`^(["'][\w/.]+["']\s*,\s*)(?:\[\]string|vec!)?[\[{]`)
	// argOfRust is a variable that a command is built with.
	argOfRust = pattern.New(`\.arg\(&?([\w.]+)\)`)
	// bareWord is a variable among its words.
	bareWord = pattern.New(`([,\[({]\s*)([A-Za-z_][\w.]*)(\s*(?:,|[\])}]|$))`)
	// builder is a command that a program of Rust builds word by word.
	builder = pattern.New(`(?m)\bCommand::new\(\s*("(?:netsh|reg|sysctl|ethtool|ip|tc|powershell)(?:\.exe)?")\s*\)(.*)$`)
	// listGoesOn is a further line of it: strings, or its end.
	listGoesOn = pattern.New(`^(?:[rf]?["']|[\])}]|[\w.!()]+\s*\?\s*["'])`)
	// chosen is one of two strings, as Python writes it and as languages after C do.
	chosen = pattern.New(`("[^"]*"|'[^']*')\s+if\s+[^,"'\])]+\selse\s+("[^"]*"|'[^']*')|` +
		`[\w.!()=&| ]+\?\s*("[^"]*"|'[^']*')\s*:\s*("[^"]*"|'[^']*')`)
	// argumentList is a list of words on one line; the options of a call may follow.
	argumentList = pattern.New(`(?i)(?:[\[({]|-argumentlist\s)\s*` +
		`(?:"[^"]*"|'[^']*')(?:\s*,\s*(?:"[^"]*"|'[^']*')){2,}\s*[\])}]?`)
	// assembled is a word of strings with a variable between them.
	assembled = pattern.New(`"\s*\+\s*([\w.]+)\s*\+\s*"`)
)

// joinLists puts each list of words on one line, and one with a choice on a line for each of both.
func joinLists(text string, lines []line) []line {
	const most = 12 // lines of a list
	if !listHead.MatchString(text) && !builder.MatchString(text) {
		return lines
	}
	out := make([]line, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if builder.MatchString(l.text) {
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1].text, ".arg") {
				i++
				l.text += lines[i].text
			}
			m := builder.FindStringSubmatch(argOfRust.ReplaceAllString(l.text, `.arg("$$$1")`))
			words := append([]string{m[1]}, quotedText.FindAllString(m[2], -1)...)
			l.text = "[" + strings.Join(words, ", ") + "]"
		} else if at := listHead.FindStringSubmatchIndex(l.text); at != nil {
			last := i
			for strings.HasSuffix(l.text, ",") && last+1 < min(len(lines), i+most) &&
				listGoesOn.MatchString(lines[last+1].text) {
				last++
				l.text += " " + lines[last].text
			}
			if at[0] == 0 && last > i {
				l.text = "[" + l.text
			}
			i = last
			l.text = variableWords(l.text)
			l.text = assembled.ReplaceAllString(l.text, "$${$1}")
			if m := chosen.FindStringSubmatch(l.text); m != nil {
				head, rest, _ := strings.Cut(l.text, m[0])
				out = append(out, line{l.number, head + m[1] + m[3] + rest, l.indent})
				l.text = head + m[2] + m[4] + rest
			}
		}
		out = append(out, l)
	}
	return out
}

var (
	// programKey and argumentsKey are the fields of an object for a command and its words.
	programKey = pattern.New(`["']?\b(?:command|cmd|program|executable|exec|bin|binary|path|file)["']?\s*[:=]\s*\[?\s*` +
		`["']?((?:/\w+)*/?(?:sysctl|ethtool|ip|tc|ifconfig|nmcli|netsh|reg|ndd|ipadm|dladm)(?:\.exe)?)["']?\s*` +
		`(?:\]|,|$)(.*)$`)
	programBelow = pattern.New(`^(?:- )?["']?command["']?:$`)
	argumentsKey = pattern.New(`["']?\b(?:args|arguments|argv|params)["']?\s*[:=]\s*(.*)$`)
	oneArgument  = pattern.New(`"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s,\[\]"'{}][^,\[\]"'{}]*)`)
)

// commandsWithArguments puts a command on one line whose program and whose words are two fields:
// {"command": "sysctl", "args": ["-w", "net.ipv4.tcp_sack=0"]}.
func commandsWithArguments(text string, lines []line) []line {
	if !strings.Contains(text, "arg") && !strings.Contains(text, "params") {
		return lines
	}
	out := make([]line, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		m := programKey.FindStringSubmatch(lines[i].text)
		if m == nil && i+1 < len(lines) && programBelow.MatchString(lines[i].text) {
			m = programKey.FindStringSubmatch("command: " + strings.TrimPrefix(lines[i+1].text, "- "))
		}
		if m == nil {
			continue
		}
		words, at, end := argumentsBehind(lines, i, m[2])
		if len(words) == 0 {
			continue
		}
		if at == i {
			out = out[:len(out)-1] // the object says nothing else
		} else {
			out = append(out, lines[i+1:at]...)
		}
		out = append(out, line{number: lines[at].number, text: m[1] + ` "` + strings.Join(words, `" "`) + `"`})
		i = end
	}
	return out
}

// variableWords makes the variables of a list words of its command, and begins the list at the
// program if other words come before.
func variableWords(text string) string {
	at := listHead.FindStringSubmatchIndex(text)
	head, rest := text[:at[0]], templateWord.ReplaceAllStringFunc(text[at[0]:], func(w string) string {
		return "'" + strings.NewReplacer("${", "$", "}", "", "`", "").Replace(w) + "'"
	})
	rest = listBehind.ReplaceAllString(rest, "$1")
	rest = madeWord.ReplaceAllStringFunc(rest, func(w string) string {
		m := madeWord.FindStringSubmatch(w)
		if m[1] != "" {
			return m[1]
		}
		if m[3] != "" {
			return `"$` + strings.ReplaceAll(m[3], ".", "_") + `"`
		}
		return `"` + m[2] + `"`
	})
	for range 2 { // one sign may end a word and begin the next one
		rest = bareWord.ReplaceAllStringFunc(rest, func(w string) string {
			m := bareWord.FindStringSubmatch(w)
			if notVariables[m[2]] {
				return w
			}
			return m[1] + `"$` + strings.ReplaceAll(m[2], ".", "_") + `"` + m[3]
		})
	}
	if trimmed := strings.TrimRight(head, " "); strings.HasSuffix(trimmed, ",") {
		head += "["
	}
	return head + rest
}

var notVariables = setOf(`True False None true false nil null undefined`)

// argumentsBehind returns the words of a command, the line of their key, and their last line.
func argumentsBehind(lines []line, at int, rest string) (words []string, key, end int) {
	const (
		between = 6  // lines with other fields
		most    = 16 // lines of the words
	)
	m := argumentsKey.FindStringSubmatch(rest)
	for key = at; m == nil; {
		if key++; key >= len(lines) || key > at+between {
			return nil, 0, 0
		}
		m = argumentsKey.FindStringSubmatch(lines[key].text)
	}
	list := m[1]
	end = key
	if strings.HasPrefix(list, "[") || strings.HasPrefix(list, "{") {
		for !strings.ContainsAny(list, "]}") && end+1 < len(lines) && end < key+most {
			end++
			list += " " + lines[end].text
		}
		list, _, _ = strings.Cut(list, "]")
	} else if list == "" {
		for end+1 < len(lines) && end < key+most && strings.HasPrefix(lines[end+1].text, "- ") {
			end++
			list += ", " + lines[end].text[2:]
		}
	} else {
		return strings.Fields(strings.Trim(list, `"',}`)), key, end
	}
	for _, w := range oneArgument.FindAllStringSubmatch(list, -1) {
		words = append(words, strings.TrimSpace(strings.ReplaceAll(w[1], `\"`, "")+w[2]+w[3]))
	}
	return words, key, end
}

// wordsOf returns the words of a list as a line of a shell.
func wordsOf(list string) string {
	var words []string
	for _, m := range quotedText.FindAllStringSubmatch(list, -1) {
		w := m[1] + m[2]
		if strings.Contains(w, " ") && isKey(w) {
			w = `"` + strings.ReplaceAll(w, `\\`, `\`) + `"`
		}
		words = append(words, w)
	}
	return withProgram(strings.Join(words, " "))
}
