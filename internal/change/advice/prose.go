package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Forms in which sentences give a value for a setting. Each names the setting by a name that can
// denote only one, and gives one number in a fixed form of words; other sentences are listed as not
// understood, and no value is guessed.
var (
	// a DWORD named NAME … NUMBER: the number may come in the next sentence.
	dwordNamed = pattern.New(
		`(?i)\b(?:(?:REG_)?DWORD|registry value|registry entry)(?:\s+value)?,?\s+(?:named|called)\s+["']?(\w+)["']?`)
	// set the value to N, behind a sentence that names a DWORD.
	valueSet = pattern.New(`(?i)\bset\s+(?:the|this|its)\s+value\s+to\s+(?:at\s+least\s+)?(?:decimal\s+)?` +
		`["']?(0x[0-9a-f]+|\d+)\b`)
	// NAME and set it to N, NAME then set its hexadecimal value to N.
	andSet = pattern.New(`(?i)\b([a-z]\w+)["'”]?,?\s+(?:and|then)\s+set\s+(?:it|its\s+(?:\w+\s+)?value)\s+` +
		`(?:also\s+)?to\s+["'“]?(0x[0-9a-f]+|[0-9a-f]{8}|\d+)\b`)
	// NAME=N (DWORD, …
	typeBehind = pattern.New("^[\"'`]?([A-Za-z]\\w+)[\"'`]?\\s*=\\s*(0x[0-9a-fA-F]+|\\d+)\\s*\\((?i:reg_)?(?i:dword)\\b")
	// NAME should be set to N, set NAME to N, NAME must be N.
	shouldBe = pattern.New(`\b([A-Za-z][\w.]*)["']?\s+(?:should|must)\s+be\s+(?:set\s+to\s+)?["']?(\d+)\b`)
	setTo    = pattern.New(`\b(?i:set|change)\s+["']?([A-Za-z][\w.]*)["']?\s+to\s+["']?(\d+)\b`)
	// NAME=N in a sentence, for parameters of modules.
	moduleWithin = pattern.New(`(?:^|[\s("'` + "`" + `])([A-Z]\w+)=(\d+(?:,\d+)*)`)
	// the HZ value set to N; DEVICE_POLLING and HZ=N: words of a kernel configuration.
	clockWords = pattern.New(`\bHZ\s+value\s+(?:was\s+)?set\s+(?:to|at)\s+(\d+)|\bDEVICE_POLLING\b.*?\bHZ=(\d+)`)
	polling    = pattern.New(`\b(?:kernel|compiled|options?)\b.*\bDEVICE_POLLING\b`)
	// a rule of ipfw that jumps, as a command or in a sentence.
	skipto = pattern.New(`\bipfw\b.*\bskipto\b(?:\s+(\d+))?`)

	wholeNumber = pattern.New(`\b\d+\b`)
)

// prose reads settings out of a sentence.
func (r *reader) prose(text string) bool {
	before := len(r.advice.Settings)
	if at := dwordNamed.FindStringSubmatchIndex(text); at != nil {
		r.dword(text[at[2]:at[3]], text[at[1]:])
	}
	if m := valueSet.FindStringSubmatch(text); m != nil && r.dwordOf != "" {
		r.add(Windows, r.dwordOf, number(m[1]))
		if n := len(r.advice.Unread) - 1; n >= 0 && strings.Contains(r.advice.Unread[n].Text, end(r.dwordOf)) {
			r.advice.Unread = r.advice.Unread[:n]
		}
		r.dwordOf = ""
	}
	for _, form := range []*pattern.Pattern{shouldBe, setTo, andSet, typeBehind} {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			r.byName(m[1], m[2])
		}
	}
	if len(r.advice.Settings) == before {
		r.saidOfRegistry(text)
	}
	for _, m := range moduleWithin.FindAllStringSubmatch(text, -1) {
		if full, ok := bareNames()["module"][m[1]]; ok {
			r.add(Linux, full, m[2])
		}
	}
	for _, m := range clockWords.FindAllStringSubmatch(text, -1) {
		r.add(FreeBSD, "option:HZ", m[1]+m[2])
	}
	if polling.MatchString(text) {
		r.add(FreeBSD, "option:DEVICE_POLLING", "yes")
	}
	if m := skipto.FindStringSubmatch(text); m != nil {
		r.add(FreeBSD, "ipfw:skipto", m[1])
	}
	return len(r.advice.Settings) > before
}

// dword reads the value of a registry entry that a sentence names: the only number up to the next
// named entry. Of several numbers any could be it.
func (r *reader) dword(name, rest string) {
	full, ok := bareNames()["registry"][name]
	if !ok {
		return
	}
	for _, word := range strings.Fields(rest) {
		if _, other := bareNames()["registry"][strings.Trim(word, `"'.,:`)]; other {
			rest, _, _ = strings.Cut(rest, word)
			break
		}
	}
	switch all := wholeNumber.FindAllString(rest, 2); len(all) {
	case 1:
		r.add(Windows, full, all[0])
		return
	case 0: // the next sentences may have it
		r.dwordOf = full
	}
	r.unread()
}

// camel is a name that is no word of a language: TcpWindowSize, and not MTU.
var camel = pattern.New(`^[A-Z]+[a-z0-9]+[A-Z]\w+$`)

// byName adds a setting whose name can denote only one.
func (r *reader) byName(name, value string) {
	name = strings.TrimRight(name, ".")
	if strings.Contains(name, ".") {
		r.sysctl(name, value)
		return
	}
	if !camel.MatchString(name) {
		return
	}
	for _, kind := range []string{"registry", "module"} {
		if full, ok := bareNames()[kind][name]; ok {
			if kind == "registry" {
				value = registryWord(value)
			}
			r.add(bareOS[kind], full, value)
			return
		}
	}
}

// Sentences and items of pages about the registry: a name, words that join, and a number. What only
// marks the name or says the type is taken off first.
var (
	marksName = pattern.New("[`*\"'_]{1,3}|(?i)\\((?:32.bit|(?:reg_)?dword)[^()]*\\)|\\b(?:reg_)?dword\\b")
	joined    = pattern.New(`(?i)\b([a-z]\w+)((?:[\s=:|,>→-]|\b(?:to|and|then|set|sets|it|its|the|be|should|must|` +
		`is|with|at|of|value|data|a|an|name|change[sd]?|enter|type|create|as|by|new|key|entry|property|in|` +
		`decimal|hex|hexadecimal|base)\b){1,24}?)(0x[0-9a-f]+|[0-9a-f]{8}|\d+)\b(\s*\(?(?:hex|default)?)`)
	notSaid = pattern.New(`[;{}$%]|,$|^["']\w+["']\s*[:=]|\w\(|==|(?i)\b(?:default|originally|between|range)\b`)
)

// saidOfRegistry reads such a sentence.
func (r *reader) saidOfRegistry(text string) bool {
	before := len(r.advice.Settings)
	if !r.windows || notSaid.MatchString(text) {
		return false
	}
	for _, m := range nicSaid.FindAllStringSubmatch(strings.NewReplacer("`", "'", "**", "'").Replace(text), -1) {
		if m[1] != "" {
			r.add(Windows, "adapter:*/"+m[1], m[3])
		}
		r.add(Windows, "adapter:*/"+m[2], m[3])
	}
	plain := marksName.ReplaceAllString(text, " ")
	for _, m := range joined.FindAllStringSubmatch(plain, -1) {
		name := registryNamed(m[1])
		if name == "" || !innerCapital.MatchString(m[1]) || len(m[1]) < 8 ||
			strings.Trim(m[2], " ") == "" && !strings.Contains(strings.ToLower(text), "dword") ||
			strings.Trim(m[2], " ,-") == "" && strings.ContainsAny(m[2], ",-") {
			continue
		}
		value := m[3]
		if hex := strings.ToLower(m[2] + m[4]); strings.Contains(hex, "hex") && !strings.HasPrefix(value, "0x") {
			value = "0x" + value
		}
		r.add(Windows, name, registryWord(value))
	}
	return len(r.advice.Settings) > before
}
