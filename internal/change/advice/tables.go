package advice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// senses are what the fourth column can say, with the rules that follow from it. text is the fifth
// column, source the present source.
//
// Direction matters more than the value: advice was written to raise a limit or to switch something
// on, and a value on the other side of the default does the opposite.
var senses = map[string]func(f *fact, text, source string){
	"more": func(f *fact, text, source string) { // a limit: less than the default is harmful
		f.Lower = "Lowers " + text
		f.Rules = append(f.Rules, rule{Verdict: StillRight, Why: "Raises " + text + ".", Source: source})
	},
	"less": func(f *fact, text, source string) { // a delay: more than the default is harmful
		f.Higher = "Raises " + text
		f.Rules = append(f.Rules, rule{Verdict: StillRight, Why: "Lowers " + text + ".", Source: source})
	},
	"on": func(f *fact, text, source string) { // a switch that is on: off is harmful
		f.Rules = append(f.Rules, rule{Values: offWords, Verdict: Harmful, Why: text, Today: "leave it out", Source: source},
			rule{Values: onWords, Verdict: NowDefault, Why: "That is the default.", Today: "leave it out", Source: source},
			rule{Verdict: StillRight, Why: "It concerns function, not performance.", Source: source})
	},
	"off": func(f *fact, text, source string) { // a switch that is off: on is harmful
		f.Rules = append(f.Rules, rule{Values: offWords, Verdict: NowDefault, Why: "That is the default.",
			Today: "leave it out", Source: source},
			rule{Verdict: Harmful, Why: text, Today: "leave it out", Source: source})
	},
	"any":  stillRight, // a choice in either direction
	"free": stillRight, // the same, with a default that differs from host to host
	"none": func(f *fact, text, source string) { // no such name
		if text == "" {
			text = "Nothing reads this name."
		}
		f.Rules = append(f.Rules, rule{Verdict: Ignored, Why: text, Today: "leave it out", Source: source})
	},
	"read": func(f *fact, _, source string) { // a figure, not a setting
		f.Rules = append(f.Rules, rule{Verdict: Ignored, Why: "The kernel lets it be read and not set.",
			Today: "leave it out", Source: source})
	},
}

func stillRight(f *fact, text, source string) {
	if text == "-" {
		text = "It concerns function, not performance."
	}
	f.Rules = append(f.Rules, rule{Verdict: StillRight, Why: text, Source: source})
}

// Words for a switch, in all the forms that the systems have.
var (
	onWords    = []string{"1", "on", "yes", "true", "enable", "enabled", "3", "rx & tx enabled", "rxtxenabled"}
	otherWords = []string{"default", "allowed", "application", "restart"} // of single switches of Windows
	offWords   = []string{"0", "off", "no", "false", "disable", "disabled", "deaktiviert", "désactivé", "deshabilitado"}
)

// tables holds what the files facts/*.tsv say: the settings of FreeBSD, macOS, Solaris and Windows,
// and those of Linux that come with a module, with their defaults, one a line. The files
// facts/*.json have what a line cannot say: rules for single values and for releases.
//
// A line has five columns, separated by tabs:
//
//   - the name, which may be a pattern;
//   - the default: one value, or RELEASE=VALUE,RELEASE=VALUE where it changed, or - where it
//     differs from host to host;
//   - the range: FIRST..LAST, words separated by bars, switch, or - for every value;
//   - the sense: the direction in which a change is wrong (see senses);
//   - what the setting does, as a sentence, or as the object of "Raises" for the senses more and
//     less; - for a choice that concerns function and not performance; = for the text of the line
//     before.
//
// "@os SYSTEM", "@source TEXT", "@since RELEASE", the first release that defaults hold for, and
// "@below PREFIX", which names write as ~, apply to the lines below them. "closed PREFIX" declares
// that the file has every name directly below the prefix; "listed PATTERN" declares it for names
// that no other fact knows. "bare NAME" is what its last part means where a text names no key.
type tables struct {
	facts  []fact
	closed map[OS][]string // beginnings of names below which every name is known
	listed map[OS][]string // patterns of which every name is known
	bare   []string        // names that their last part alone stands for
}

// tablesOf parses them once.
var tablesOf = sync.OnceValue(func() tables {
	all := tables{closed: map[OS][]string{}, listed: map[OS][]string{}}
	for name, text := range filesOf(".tsv") {
		if err := all.parse(text); err != nil {
			// The data is part of this program and its tests parse it.
			panic(fmt.Sprintf("built-in tables: %s: %v", name, err))
		}
	}
	return all
})

// parse adds the lines of one file.
func (t *tables) parse(text string) error {
	var o OS
	source, oldest, before, below := "", "1", "", ""
	for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Split(line, "\t")
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
		case word == "@os":
			o = OS(rest)
		case word == "@source":
			source = rest
		case word == "@since":
			oldest = rest
		case word == "@below":
			below = rest
		case len(f) == 2 && f[0] == "closed":
			t.closed[o] = append(t.closed[o], strings.ToLower(f[1]))
		case len(f) == 2 && f[0] == "listed":
			t.listed[o] = append(t.listed[o], strings.ToLower(f[1]))
		case len(f) == 2 && f[0] == "bare":
			t.bare = append(t.bare, f[1])
		case len(f) != 5 || o == "" || source == "":
			return fmt.Errorf("line %d: not five columns below a system and a source", n+1)
		default:
			one := fact{OS: o, Knob: strings.Replace(f[0], "~", below, 1), Source: source}
			if f[2] != "-" {
				one.Range = f[2]
			}
			if f[4] != "=" {
				before = f[4]
			}
			if err := one.sensed(f[1], oldest, f[3], before); err != nil {
				return fmt.Errorf("line %d: %w", n+1, err)
			}
			if err := one.check(); err != nil {
				return fmt.Errorf("line %d: %w", n+1, err)
			}
			t.facts = append(t.facts, one)
		}
	}
	return nil
}

// sensed gives a fact its default, from the release oldest on if it has none, and the rules of its
// sense.
func (f *fact) sensed(value, oldest, sense, text string) error {
	if value != "-" {
		for _, part := range strings.Split(value, ",") {
			since, was, dated := strings.Cut(part, "=")
			if !dated {
				since, was = oldest, part
			}
			f.Defaults = append(f.Defaults, history{Since: since, Value: was})
		}
	}
	if release, gone := strings.CutPrefix(sense, "gone:"); gone {
		f.Rules = append(f.Rules, rule{Since: release, Verdict: Removed, Why: text, Today: "leave it out", Source: f.Source},
			rule{Verdict: StillRight, Why: "It concerns function, not performance.", Source: f.Source})
		return nil
	}
	if release, past := strings.CutPrefix(sense, "past:"); past { // read once, and without effect since
		f.Rules = append(f.Rules, rule{Since: release, Verdict: Ignored, Why: text, Today: "leave it out", Source: f.Source},
			rule{Verdict: StillRight, Why: "It concerns function, not performance.", Source: f.Source})
		return nil
	}
	apply := senses[sense]
	if apply == nil {
		return fmt.Errorf("sense %q", sense)
	}
	apply(f, text, f.Source)
	return nil
}

// merge adds the facts of the tables to those of the files of rules. Where both have a name, the
// rules come from there, unless they only say that the setting exists and the table has more to
// say; the default and the range come from here if the other has none.
func (t tables) merge(all []fact) []fact {
	type key struct {
		os   OS
		name string
	}
	at := map[key]int{}
	for i, f := range all {
		at[key{f.OS, strings.ToLower(f.Knob)}] = i
	}
	for _, f := range t.facts {
		i, both := at[key{f.OS, strings.ToLower(f.Knob)}]
		if !both {
			all = append(all, f)
			continue
		}
		have := &all[i]
		if len(have.Defaults) == 0 {
			have.Defaults = f.Defaults
			if have.Source == "" {
				have.Source = f.Source
			}
		}
		if have.Range == "" {
			have.Range = f.Range
		}
		if len(have.Rules) == 1 && !have.Rules[0].asksValue() && have.Rules[0].Verdict == StillRight &&
			slices.ContainsFunc(f.Rules, func(r rule) bool { return r.Verdict == Harmful || r.Verdict == Ignored }) {
			have.Rules = f.Rules
		}
		if have.Lower == "" && have.Higher == "" {
			have.Lower, have.Higher = f.Lower, f.Higher
		}
	}
	return all
}

// unknownName reports whether the tables have every name where this one would be, and not this one.
// byPattern is whether a fact with a star in its name fits it.
func unknownName(o OS, name string, byPattern bool) bool {
	t := tablesOf()
	name = strings.ToLower(name)
	for _, prefix := range t.closed[o.family()] {
		if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, ".") {
			return true
		}
	}
	return !byPattern && slices.ContainsFunc(t.listed[o.family()], func(p string) bool { return globs(p, name) })
}

// nearName returns the name of the tables that a misspelt one resembles, in the same closed tree.
func nearName(o OS, name string) string {
	return strings.TrimPrefix(resembling(name, func(yield func(string) bool) {
		for _, f := range tablesOf().facts {
			if f.OS == o.family() && !strings.Contains(f.Knob, "*") &&
				strings.Count(f.Knob, ".") == strings.Count(name, ".") && !yield(f.Knob) {
				return
			}
		}
	}), "sysctl:")
}

// outside returns the range of a fact in words if a value is not in it. A value that is no number
// is outside of no range of numbers: FreeBSD and the others have several spellings for them.
func (f fact) outside(value string) string {
	first, last, numbers := strings.Cut(f.Range, "..")
	if numbers {
		low, _ := strconv.ParseInt(first, 0, 64)
		high, _ := strconv.ParseInt(last, 0, 64)
		n, ok := sized(value)
		if ok && (n < low || n > high) {
			return first + " to " + last
		}
		return ""
	}
	if f.Range == "switch" {
		if slices.Contains(onWords, strings.ToLower(value)) || slices.Contains(offWords, strings.ToLower(value)) ||
			slices.Contains(otherWords, strings.ToLower(value)) {
			return ""
		}
		return "enabled, disabled, default"
	}
	words := strings.Split(f.Range, "|")
	if f.Range == "" || slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, value) }) {
		return ""
	}
	return strings.Join(words, ", ")
}

// sized parses a number as the kernel does, with the suffix for its size that FreeBSD's loader
// takes (loader.conf(5): k, m, g, t).
func sized(value string) (int64, bool) {
	shift := 0
	if n := len(value) - 1; n > 0 && !strings.HasPrefix(value, "0x") {
		if at := strings.IndexByte("kmgt", value[n]|0x20); at >= 0 {
			value, shift = value[:n], 10*(at+1)
		}
	}
	n, err := strconv.ParseInt(value, 0, 64)
	if err != nil || n > 1<<40 && shift > 0 {
		return 0, false
	}
	return n << shift, true
}

// sameValue reports whether two values of a system other than Linux are one: the same number, the
// same word in either case, or the same position of a switch.
func sameValue(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if x, ok := sized(a); ok {
		if y, ok := sized(b); ok {
			return x == y
		}
	}
	on := func(s string) bool { return slices.Contains(onWords[:6], strings.ToLower(s)) }
	off := func(s string) bool { return slices.Contains(offWords, strings.ToLower(s)) }
	return on(a) && on(b) || off(a) && off(b)
}
