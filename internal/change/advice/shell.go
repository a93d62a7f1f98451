package advice

import (
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// script holds what a text says about its own variables and functions, in the languages of a shell,
// of batch files and of PowerShell. Nothing is executed: a variable has a value if the text assigns
// it one literal value and nothing else, a loop has items if they are written out, and a function
// is what its lines are with the words of a call in their places. What is not certain keeps its
// name, and the reader then takes it for a variable.
type script struct {
	constants map[string]string
	functions map[string][]string // lines of functions that set what their arguments say
	body      map[int]bool        // lines of such functions, by their number
	// the names of their parameters, of PowerShell
	parameters map[string][]string
	loops      []loop            // open at the present line
	paths      map[string]string // directories of the kernel that variables name at the present line
	left       int               // bytes of expanded text that may still be made
	power      powerScript       // tables and loops of PowerShell and of batch files
}

// loop is an open loop. One without a name goes over something that is not known.
type loop struct {
	name  string
	items []string
}

const (
	mostExpanded = 4 << 20 // bytes that the loops and functions of a text may become
	mostItems    = 64      // of a loop, or of several within each other
	deepest      = 3       // functions that call functions
)

var (
	// assigned is an assignment of a shell with a literal value: the whole of it is behind the sign.
	assigned = pattern.New(`(?:^|[;&({]\s*)` +
		`(?:(?:export|local|readonly|declare(?:\s+-\w+)?|typeset(?:\s+-\w+)?)\s+)?` +
		`([A-Za-z_]\w*)=("[^"$` + "`" + `\\]*"|'[^']*'|[^\s;&|()$"'` + "`" + `<>\\]+)\s*(?:$|[;&}]|#|\s\w+=)`)
	// assignedBatch and assignedPower are the same of a batch file and of PowerShell.
	assignedBatch = pattern.New(`(?i)^@?set\s+"?([A-Za-z_]\w*)=([^"%!&|^]+)"?$`)
	assignedPower = pattern.New(`^(?:\$(?:script|global):|my\s+\$|\$|const\s+)([A-Za-z_]\w*)\s*=\s*` +
		`("[^"$` + "`" + `]*"|'[^']*'|\d+)\s*;?$`)
	// anyAssignment is whatever may give a variable a value.
	anyAssignment = pattern.New(`(?:^|[^\w.$/=-])\$?([A-Za-z_]\w*)(?:\[[^\]]*\])?\s?[-+*/|]?=(?:[^=~]|$)`)
	powerAssigned = pattern.New(`\$(?:\w+:)?([A-Za-z_]\w*)\s*[-+*]?=(?:[^=~]|$)`)
	setElsewhere  = pattern.New(`\b(?:read|for|foreach|select|getopts\s+\S+|` +
		`printf\s+-v|unset|let|mapfile|readarray)\s+` +
		`((?:-\w+\s+(?:"[^"]*"\s+)?)*\(?\$?["']?[A-Za-z_]\w*(?:\s+[A-Za-z_]\w*)*)|([A-Za-z_]\w*)(?:\+\+|--)|` +
		`\$\{([A-Za-z_]\w*):?=|(?i:\bset\s+/[ap]\s+"?([A-Za-z_]\w*))|\]\s*\$([A-Za-z_]\w*)`)

	variableInText = pattern.New(`\\?\$\{([A-Za-z_]\w*)\}|\\?\$([A-Za-z_]\w*)|%([A-Za-z_]\w*)%|!([A-Za-z_]\w*)!`)
	positional     = pattern.New(`\$\{([1-9])\}|\$([1-9])(?:\b|_)?`)

	loopHead   = pattern.New(`^for\s+([A-Za-z_]\w*)\s+in\s+([^;]+?)\s*(;\s*do\b\s*(.*))?$`)
	loopWithin = pattern.New(`\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;]+?)\s*;\s*do\s+`)
	doneWithin = pattern.New(`\s*;?\s*\bdone\b`)
	otherLoop  = pattern.New(`(?:^|[;|]\s*)(?:while|until|select)\b.*;\s*do\b|^do$`)
	loopEnd    = pattern.New(`^done\b`)

	pathAssigned = pattern.New(`^(?:local\s+)?([A-Za-z_]\w*)=["']?(/(?:proc/sys|sys/class/net)[\w./${}-]*)["']?$`)

	functionHead = pattern.New(`^(?:[fF]unction\s+([\w:.-]+)\s*(?:\(([^(){}]*)\))?|` +
		`([\w:.-]+)\s*\(\s*\))\s*(\{.*)?$`)
	setsByWord  = pattern.New(`\b(?:sysctl|ethtool|ip|ndd|ipadm|netsh|ifconfig)\b|/proc/sys|/sys/|>>|\btee\b`)
	aliasOfWord = pattern.New(`^(?:(?:local|declare|typeset)\s+(?:-\w+\s+)?)?` +
		`((?:[A-Za-z_]\w*=["']?\$\{?[1-9]\}?["']?\s*;?\s*)+)$`)
	oneAlias = pattern.New(`([A-Za-z_]\w*)=["']?\$\{?([1-9])\}?["']?`)
)

// newScript looks for the variables and the functions of a text.
func newScript(text string, lines []line) *script {
	s := &script{functions: map[string][]string{}, parameters: map[string][]string{},
		body: map[int]bool{}, paths: map[string]string{}, left: mostExpanded, power: newPowerScript(text, lines)}
	if !strings.ContainsAny(text, "$%!") {
		return s
	}
	s.findConstants(lines)
	s.findFunctions(lines)
	s.findBatchFunctions(lines)
	return s
}

// findConstants keeps the variables that have one literal value in the whole text.
func (s *script) findConstants(lines []line) {
	values := map[string]string{}
	literal, all := map[string]int{}, map[string]int{}
	other := map[string]bool{}
	for _, l := range lines {
		t := l.text
		if strings.HasPrefix(t, "#") || !strings.ContainsAny(t, "=+-") && !setElsewhere.MatchString(t) {
			continue
		}
		for _, form := range []*pattern.Pattern{assigned, assignedBatch, assignedPower} {
			for _, m := range form.FindAllStringSubmatch(t, -1) {
				value := strings.TrimSpace(m[2])
				if len(value) > 1 && (value[0] == '"' || value[0] == '\'') {
					value = value[1 : len(value)-1]
				}
				if old, ok := values[m[1]]; ok && old != value {
					other[m[1]] = true
				}
				values[m[1]] = value
				literal[m[1]]++
			}
		}
		for _, m := range anyAssignment.FindAllStringSubmatch(t, -1) {
			all[m[1]]++
		}
		for _, m := range powerAssigned.FindAllStringSubmatch(t, -1) {
			other[m[1]] = other[m[1]] || !assignedPower.MatchString(t)
		}
		for _, m := range setElsewhere.FindAllStringSubmatch(t, -1) {
			for _, w := range strings.FieldsFunc(m[1]+" "+m[2]+" "+m[3]+" "+m[4]+" "+m[5], notInName) {
				other[w] = true
			}
		}
	}
	s.constants = map[string]string{}
	for name, value := range values {
		if !other[name] && literal[name] >= all[name] && value != "" && len(value) <= 400 {
			s.constants[name] = value
		}
	}
}

func notInName(c rune) bool {
	return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// findFunctions keeps the lines of each function that sets something by its arguments.
func (s *script) findFunctions(lines []line) {
	called := calls(lines)
	for i := 0; i < len(lines); i++ {
		m := functionHead.FindStringSubmatch(lines[i].text)
		if m == nil {
			continue
		}
		name := m[1] + m[3]
		body, numbers, end := functionBody(lines, i, m[4])
		if end < 0 {
			continue
		}
		body = withoutAliases(body)
		names, joined := parametersOf(m[2], body)
		sets := slices.ContainsFunc(body, func(t string) bool {
			return positional.MatchString(t) && setsByWord.MatchString(t)
		})
		if !sets && len(names) > 0 {
			body, sets = joined, slices.ContainsFunc(joined, setsInPower.MatchString)
		}
		if _, twice := s.functions[name]; sets && !twice && called[name] {
			s.functions[name], s.parameters[name] = body, names
			for _, n := range numbers {
				s.body[n] = true
			}
		}
		i = end
	}
}

// functionBody returns the lines of the function that begins at a line, their numbers, and the last
// one; −1 without an end within the longest functions.
func functionBody(lines []line, at int, rest string) (body []string, numbers []int, end int) {
	const longest = 60
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "{"))
	if inner, ok := strings.CutSuffix(rest, "}"); ok && rest != "" {
		return []string{strings.TrimSpace(inner)}, []int{lines[at].number}, at
	}
	depth := 1
	for i := at + 1; i < len(lines) && i < at+longest; i++ {
		t := lines[i].text
		if t == "{" && i == at+1 {
			continue
		}
		if strings.HasPrefix(t, "}") {
			depth--
		}
		if depth == 0 {
			return body, numbers, i
		}
		if strings.HasSuffix(t, "{") && !strings.HasSuffix(t, "${") {
			depth++
		}
		body, numbers = append(body, t), append(numbers, lines[i].number)
	}
	return nil, nil, -1
}

// withoutAliases writes the arguments in the place of the variables that a function gives them to:
// local key="$1".
func withoutAliases(body []string) []string {
	alias := map[string]string{}
	for _, t := range body {
		if m := aliasOfWord.FindStringSubmatch(t); m != nil {
			for _, a := range oneAlias.FindAllStringSubmatch(m[1], -1) {
				alias[a[1]] = "${" + a[2] + "}"
			}
		}
	}
	if len(alias) == 0 {
		return body
	}
	out := make([]string, 0, len(body))
	for _, t := range body {
		if !aliasOfWord.MatchString(t) {
			out = append(out, substitute(t, alias))
		}
	}
	return out
}

// calls returns the first words of the lines that have another word behind it.
func calls(lines []line) map[string]bool {
	called := map[string]bool{}
	for _, l := range lines {
		name, rest, _ := strings.Cut(l.text, " ")
		if rest = strings.TrimSpace(rest); rest != "" && !strings.HasPrefix(rest, "(") {
			called[name] = true
		}
	}
	return called
}

// substitute writes the values of variables in their places.
func substitute(text string, values map[string]string) string {
	if len(values) == 0 || !strings.ContainsAny(text, "$%!") {
		return text
	}
	var out strings.Builder
	last, quote := 0, false // a quote that the key of a registry needs, up to the end of the word
	for _, at := range variableInText.FindAllStringIndex(text, -1) {
		value, ok := values[strings.Trim(text[at[0]:at[1]], `\${}%!`)]
		if !ok {
			continue
		}
		out.WriteString(text[last:at[0]])
		last = at[1]
		if quote = strings.Contains(value, " ") && isKey(value) && (at[0] == 0 || text[at[0]-1] == ' ') &&
			strings.Count(text[:at[0]], `"`)%2 == 0; quote {
			length := strings.IndexByte(text[last:], ' ')
			if length < 0 {
				length = len(text) - last
			}
			value = `"` + value + text[last:last+length] + `"`
			last += length
		}
		out.WriteString(value)
	}
	return out.String() + text[last:]
}

// lines returns what a line is with its variables and loops written out.
func (s *script) lines(text string) []string {
	if s.constants != nil && !assignedPower.MatchString(text) {
		for range 3 { // a value that has a variable in it
			next := substitute(text, s.constants)
			if next == text || len(next) > len(text)+4096 {
				break
			}
			text = next
		}
	}
	if m := pathAssigned.FindStringSubmatch(text); m != nil {
		s.paths[m[1]] = m[2]
		return []string{text}
	}
	text = s.inner(substitute(text, s.paths))
	head := loopHead.FindStringSubmatch(text)
	switch {
	case head != nil && !strings.HasSuffix(head[2], ":"):
		delete(s.paths, head[1])
		items, rest := itemsOf(head[2]), strings.TrimSpace(head[4])
		if !doneWithin.MatchString(rest) {
			s.loops = append(s.loops, loop{head[1], items})
		}
		if len(items) == 0 || strings.Contains(head[2], "=") {
			return []string{text} // a loop over files, or over settings themselves
		}
		return s.each(rest)
	case otherLoop.MatchString(text) && !strings.Contains(text, "done"):
		if text != "do" {
			s.loops = append(s.loops, loop{})
		}
	case loopEnd.MatchString(text) && len(s.loops) > 0:
		s.loops = s.loops[:len(s.loops)-1]
	}
	return s.each(text)
}

// inner writes out the loops that begin and end within a line, the inner ones first.
func (s *script) inner(text string) string {
	for range 2 * deepest {
		at, ok := innermost(text)
		if !ok {
			break
		}
		body := text[at.body:at.end]
		items := itemsOf(text[at.list:at.listEnd])
		if len(items)*len(body) > s.left {
			break
		}
		parts := make([]string, 0, len(items))
		for _, item := range items {
			parts = append(parts, substitute(body, map[string]string{at.name: item}))
		}
		text = text[:at.begin] + strings.Join(parts, "; ") + text[at.behind:]
		s.left -= len(text)
	}
	return text
}

// span is the place of a loop within a line.
type span struct {
	name                                    string
	begin, list, listEnd, body, end, behind int
}

// innermost returns the first loop of a line, by its end, whose items are written out.
func innermost(text string) (span, bool) {
	if !strings.Contains(text, "done") {
		return span{}, false
	}
	heads := loopWithin.FindAllStringSubmatchIndex(text, mostItems)
	var open []span
	for _, d := range doneWithin.FindAllStringIndex(text, mostItems) {
		for len(heads) > 0 && heads[0][0] < d[0] {
			h := heads[0]
			open = append(open, span{text[h[2]:h[3]], h[0], h[4], h[5], h[1], 0, 0})
			heads = heads[1:]
		}
		if len(open) == 0 {
			continue
		}
		last := open[len(open)-1]
		open = open[:len(open)-1]
		if last.end, last.behind = d[0], d[1]; last.body <= last.end && len(itemsOf(text[last.list:last.listEnd])) > 0 {
			return last, true
		}
	}
	return span{}, false
}

// each repeats a line for the items of the loops around it that it uses.
func (s *script) each(text string) []string {
	all := []string{text}
	for _, l := range s.loops {
		if len(l.items) == 0 || !strings.Contains(text, "$"+l.name) && !strings.Contains(text, "${"+l.name+"}") ||
			len(all)*len(l.items) > mostItems {
			continue
		}
		var next []string
		for _, t := range all {
			for _, item := range l.items {
				next = append(next, substitute(t, map[string]string{l.name: item}))
			}
		}
		size := 0
		for _, t := range next {
			size += len(t)
		}
		if size > s.left {
			return all
		}
		s.left -= size
		all = next
	}
	return all
}

// itemsOf returns the words that a loop goes over, or nothing if one of them is not written out. Of
// the files of an interface that a variable names it returns the last, because all are of one kind:
// for q in /sys/class/net/$i/queues/rx-*.
func itemsOf(list string) []string {
	if strings.ContainsAny(list, "`()<>|") {
		return nil
	}
	if strings.Contains(list, "$") {
		words := strings.Fields(list)
		if slices.ContainsFunc(words, func(w string) bool { return !strings.HasPrefix(strings.Trim(w, `"'`), "/") }) {
			return nil
		}
		return []string{strings.Trim(words[len(words)-1], `"'`)}
	}
	var items []string
	words := strings.Fields(strings.ReplaceAll(list, ", ", ",")) // {a,b, with the rest on the next line
	if strings.Contains(list, `"`) && strings.Contains(list, " ") {
		if all := splitCommands(list); len(all) == 1 {
			words = all[0].words
		}
	}
	for _, w := range words {
		items = append(items, braces(strings.Trim(w, `"'`))...)
		if len(items) > mostItems {
			return nil
		}
	}
	return items
}

// braces writes out {a,b} and {1..4} of a word.
func braces(word string) []string {
	const longest = 4096
	open := strings.IndexByte(word, '{')
	if open < 0 || len(word) > longest {
		return []string{word}
	}
	length := strings.IndexByte(word[open:], '}')
	if length < 0 {
		return []string{word}
	}
	before, inner, after := word[:open], word[open+1:open+length], word[open+length+1:]
	var choices []string
	if first, last, ok := strings.Cut(inner, ".."); ok {
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || b < a || b-a > mostItems {
			return []string{word}
		}
		for i := a; i <= b; i++ {
			choices = append(choices, strconv.Itoa(i))
		}
	} else if strings.Contains(inner, ",") {
		choices = strings.Split(inner, ",")
	} else {
		return []string{word}
	}
	ends := braces(after)
	if len(choices)*len(ends) > mostItems {
		return []string{word}
	}
	var all []string
	for _, c := range choices {
		for _, end := range ends {
			all = append(all, before+strings.TrimSpace(c)+end)
		}
	}
	return all
}

// call returns the lines of the function that a line calls, with the words of the call in the
// places of its arguments; nil for any other line, and none if the text has become too long.
func (s *script) call(text string) []string {
	if len(s.functions) == 0 {
		return nil
	}
	if m := batchCall.FindStringSubmatch(text); m != nil {
		text = strings.ToLower(m[1]) + m[2]
	}
	first, _, _ := strings.Cut(text, " ")
	body := s.functions[first]
	if body == nil {
		return nil
	}
	all := splitCommands(text)
	if len(all) == 0 || len(all[0].words) < 2 {
		return nil
	}
	words := all[0].words
	if names := s.parameters[first]; names != nil {
		return s.powerCall(body, names, words[1:])
	}
	out := make([]string, 0, len(body))
	for _, t := range body {
		t = positional.ReplaceAllStringFunc(t, func(m string) string {
			n := int(strings.TrimLeft(m, "${")[0] - '0')
			if n < len(words) {
				return words[n] + strings.TrimLeft(strings.TrimLeft(m, "${}"), "123456789}")
			}
			return m
		})
		if s.left -= len(t); s.left < 0 {
			return []string{}
		}
		out = append(out, substitute(t, s.constants))
	}
	return out
}

// readLine reads a line, or a part of one, with everything written out that the text says about its
// variables, loops and functions.
func (r *reader) readLine(text string, depth int) {
	var all []string
	for _, t := range r.script.powerLines(text) {
		all = append(all, r.script.lines(t)...)
	}
	for _, t := range all {
		if body := r.script.call(t); body != nil && depth < deepest {
			settings, unread := len(r.advice.Settings), len(r.advice.Unread)
			for _, b := range body {
				r.readLine(b, depth+1)
			}
			r.advice.Unread = r.advice.Unread[:unread] // the lines of the function say nothing of this call
			if r.keepNamed(settings) {
				continue
			}
			r.unread() // the function sets something, and the lines of it are left out
		}
		if t != text && isKeyed.MatchString(t) {
			r.keyed[r.line.number] = true
		}
		r.line.text = t
		r.read()
	}
}

// isKeyed is a line with a key of its own.
var isKeyed = pattern.New(`(?i)\bhk(?:lm|ey_local_machine):?\\`)

// keepNamed drops the settings behind a place that a call made twice or without a name, and reports
// whether any is left: a function sets a file and the kernel.
func (r *reader) keepNamed(from int) bool {
	kept := r.advice.Settings[:from]
	for _, s := range r.advice.Settings[from:] {
		again := slices.ContainsFunc(kept[from:], func(k Setting) bool { return k.Knob == s.Knob && k.Value == s.Value })
		if !again && !openName(s.Knob) {
			kept = append(kept, s)
		}
	}
	r.advice.Settings = kept
	return len(kept) > from
}
