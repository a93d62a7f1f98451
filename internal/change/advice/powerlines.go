package advice

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/advice/powershell"
)

// runsPower is what a text of PowerShell has that sets something by what it keeps in variables.
var (
	runsPower = pattern.New(`(?i)\$_\b|foreach\s*\(|\$(?:\w+:)?\w+\s*=|\bparam\s*\(|\.getenumerator\(|foreach-object`)
	setsPower = pattern.New(`(?i)itemproperty|netadapter|-net\w+\b|netsh|\breg(?:\.exe)?\s+add|\bhk(?:lm|cu|ey_\w+):?\\`)
	// listOfNetsh are the words of netsh in a list.
	listOfNetsh = pattern.New(`@\("int(?:erface)?",[^()]*\)`)
	// dataFile is a text of JSON, whose brackets are no blocks.
	dataFile = pattern.New(`^\s*[\[{]\s*["{\[]`)
	// quotedNetsh are the words of netsh in one string.
	quotedNetsh = pattern.New(`(?i)^netsh(?:\.exe)?\s+"(int[^"]*)"`)
	onlyLooks   = pattern.New(`(?i)^(?:get|test|remove|clear|write|out|restart|start-sleep|select|where|measure|format|` +
		`compare|checkpoint|backup|restore|import|export|confirm|check|convert\w*|read|assert|ensure|new-item$|log)(?:-|$)`)
)

// workedOut returns the commands of the lines whose text is not what runs, and notes in skip the
// lines that are read with them.
func workedOut(text string, lines []line, skip map[int]bool) map[int][]string {
	if !setsPower.MatchString(text) || dataFile.MatchString(text) {
		return nil
	}
	plain, taken := withoutStrings(text)
	if len(taken) == 0 && !runsPower.MatchString(text) {
		return nil
	}
	script := powershell.Expand(plain, needOf)
	all := map[int][]powershell.Command{}
	for _, c := range script.Commands {
		at, found := slices.BinarySearchFunc(lines, c.Line, func(l line, n int) int { return l.number - n })
		if !found {
			at--
		}
		if at >= 0 {
			all[lines[at].number] = append(all[lines[at].number], c)
		}
	}
	out := map[int][]string{}
	for n, commands := range all {
		changed := slices.ContainsFunc(commands, func(c powershell.Command) bool {
			_, in := taken[c.Line]
			return !c.As || in
		})
		if !changed || slices.ContainsFunc(commands, func(c powershell.Command) bool { return !c.Known }) {
			continue
		}
		for _, c := range commands {
			said := quotedNetsh.ReplaceAllString(c.Text, "netsh $1")
			out[n] = append(out[n], listOfNetsh.ReplaceAllStringFunc(said, func(l string) string {
				return "; netsh " + strings.NewReplacer(`@(`, "", `)`, "", `"`, "", ",", " ").Replace(l) + ";"
			}))
		}
		skip[n] = true
	}
	for n, on := range taken { // the rest of a command on more lines
		skip[n] = skip[n] || on && all[n] == nil
	}
	for n := range script.Data {
		skip[n] = skip[n] || all[n] == nil
	}
	return out
}

// inString is a line of PowerShell that a program in another language has as a string, alone or as
// what a call adds to a text.
var inString = pattern.New(`^\s*(?:\w+(?:\.\w+)*\(\s*)?[@$rf]*"(.*?)(?:\\[rn])*"\s*[+,);]*\s*$`)

// inShell is a script of PowerShell in the quotes of another shell or of a program.
var inShell = pattern.New(`(?i)\b(?:powershell|pwsh)(?:\.exe)?\s[^"\n]*-c(?:ommand)?\s+(\\?")(.+)$`)

// inVariable is a script that a variable of another one holds.
var inVariable = pattern.New(`^\s*\$\w+\s*=\s*'([^']*\s\|\s[^']*)'\s*$`)

// writtenScript is a line of a script that another one writes, with its variables masked.
var writtenScript = pattern.New("(?m)^[ \\t]*`\\$\\w+\\s*=")

// templateOpens begins a script within backquotes, which JavaScript and Go have.
var templateOpens = pattern.New("(?m)^[ \\t]*\\w+\\s*[:=]\\s*`")

// withoutStrings returns a text with such scripts in the places of their lines, and these lines.
// True stands for one that goes on with the command before it.
func withoutStrings(text string) (plain string, taken map[int]bool) {
	if templateOpens.MatchString(text) {
		text = templateOpens.ReplaceAllStringFunc(text, func(head string) string { return strings.Repeat(" ", len(head)) })
	}
	if writtenScript.MatchString(text) {
		text = strings.ReplaceAll(text, "`$", " $")
	}
	lines := strings.Split(text, "\n")
	taken = map[int]bool{}
	masked := strings.Contains(text, `\\`) || strings.Contains(text, `\n"`)
	for i, l := range lines {
		script := ""
		if m := inShell.FindStringSubmatch(l); m != nil {
			if end := strings.LastIndex(m[2], m[1]); end >= 0 {
				script = m[2][:end]
			}
		} else if m := inVariable.FindStringSubmatch(l); m != nil && setsPower.MatchString(m[1]) {
			script = m[1]
		} else if m := inString.FindStringSubmatch(l); masked && m != nil {
			script = m[1]
		}
		if script != "" {
			lines[i] = unmasked.Replace(script)
			taken[i+1] = i > 0 && strings.HasSuffix(lines[i-1], "`")
		}
	}
	return strings.Join(lines, "\n"), taken
}

// unmasked takes the marks of a string of a program off.
var unmasked = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\r\n`, "; ", `\n`, "; ")

// needOf says whether a command sets something that can be read.
func needOf(words []string) powershell.Need {
	name := strings.TrimSuffix(strings.ToLower(words[0]), ".exe")
	if name == "get-netadapteradvancedproperty" {
		return powershell.Beside
	}
	if _, known := cmdlets[name]; known || name == "netsh" || name == "reg" {
		return powershell.Wanted
	}
	if _, _, known := adapterSwitch(name); known {
		return powershell.Wanted
	}
	if onlyLooks.MatchString(name) || len(words) == 1 || isKey(strings.Trim(words[0], `"'`)) {
		return powershell.Unwanted
	}
	for _, w := range words {
		w = strings.Trim(w, `"'`)
		if isKey(w) || strings.HasPrefix(w, `@("int`) || strings.Contains(w, "netsh ") || strings.Contains(w, "reg add ") ||
			w == "netsh" || strings.HasPrefix(w, "int tcp ") || strings.HasPrefix(w, "interface tcp ") {
			return powershell.Wanted
		}
	}
	return powershell.Unwanted
}
