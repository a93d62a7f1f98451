package advice

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"

	"github.com/linerate/linerate/internal/change/knob"
)

// fact is the knowledge about one setting, or about all settings whose names match its pattern:
// beyond the catalogue of knobs, the history of Linux settings and those of other systems.
//
// Rules are tried in order; the first match decides. A comparison with the default comes after the
// rules that use the value and before the other rules, so that a list may end in a rule for every
// other value.
type fact struct {
	OS       OS        `json:"-"`    // empty: every system
	Knob     string    `json:"knob"` // * matches any text; case is ignored
	Field    int       `json:"field,omitempty"`
	Lower    string    `json:"lower,omitempty"`  // why a number under the default is harmful; empty: it is not
	Higher   string    `json:"higher,omitempty"` // the same for one over the default
	Range    string    `json:"range,omitempty"`  // values that the system takes, as in tables.go; empty: not known
	Defaults []history `json:"defaults,omitempty"`
	Rules    []rule    `json:"rules,omitempty"`
	// the source of the rules that name none
	RulesSource string `json:"rules_source,omitempty"`
	Today       string `json:"today,omitempty"`  // for verdicts that come from the defaults
	Source      string `json:"source,omitempty"` // for the same

	pattern string // Knob in small letters
	head    string // its part before the first star, in factsByPattern
}

// history is a default and the release from which it held. Lists begin with the oldest.
//
// Releases are those of kernel.org, where a default changed with a commit that the source names. It
// excludes a distribution's own defaults (sysctl.d of systemd and of the cloud images): --current
// shows the values of a host.
type history struct {
	Since string `json:"since"`
	Value string `json:"value"`
}

// rule is a verdict under conditions, all of which must apply.
//
// Why is what the setting does on the releases that the rule is for, and not what the page
// believed. Today is a command, a name or a value to type, or "leave it out". A file may leave out
// both for the value of the default, and Today for an ignored setting, see complete.
type rule struct {
	Since  string   `json:"since,omitempty"`  // first release that it holds for
	Before string   `json:"before,omitempty"` // first release that it no longer holds for
	Values []string `json:"values,omitempty"` // the value is one of these
	Below  *int64   `json:"below,omitempty"`  // the number (of Field) is smaller
	Above  *int64   `json:"above,omitempty"`  // the number (of Field) is larger
	// the second of three numbers, which connections start with, is smaller
	StartBelow *int64  `json:"start_below,omitempty"`
	Unless     string  `json:"unless,omitempty"` // NAME=VALUE: the text itself sets this, so that the rule does not hold
	Verdict    Verdict `json:"verdict"`
	Why        string  `json:"why,omitempty"`
	Today      string  `json:"today,omitempty"`
	Source     string  `json:"source,omitempty"`
}

// asksValue reports whether the rule looks at the value.
func (r rule) asksValue() bool {
	return len(r.Values) > 0 || r.Below != nil || r.Above != nil || r.StartBelow != nil
}

// facts are all of them, in the order of the files.
var facts = sync.OnceValue(func() []fact {
	var all []fact
	for name, text := range filesOf(".json") {
		some, err := parseFacts(systemOf(name), text)
		if err != nil {
			// The data is part of this program and its tests parse it.
			panic(fmt.Sprintf("built-in facts: %s: %v", name, err))
		}
		all = append(all, some...)
	}
	all = tablesOf().merge(all)
	for i := range all {
		all[i].pattern = strings.ToLower(all[i].Knob)
	}
	return all
})

// systemOf returns the system that a file is about, the first word of its name. Other words stand
// for programs, whose settings are the same on every system.
func systemOf(file string) OS {
	word := strings.FieldsFunc(path.Base(file), func(r rune) bool { return r == '-' || r == '.' })[0]
	switch o := OS(word); o {
	case Linux, FreeBSD, NetBSD, Darwin, Solaris, Windows:
		return o
	}
	return ""
}

// parseFacts reads one file and refuses facts that could not be applied or checked.
func parseFacts(o OS, text string) ([]fact, error) {
	// A misspelt key would silently make a rule hold always.
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var all []fact
	if err := dec.Decode(&all); err != nil {
		return nil, err
	}
	for i := range all {
		f := &all[i]
		f.OS = o
		f.complete()
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Knob, err)
		}
	}
	return all, nil
}

// complete fills in what the rules of a file leave out.
func (f *fact) complete() {
	for i := range f.Rules {
		r := &f.Rules[i]
		if r.Source == "" {
			r.Source = f.RulesSource
		}
		if r.Today == "" && (r.Verdict == Ignored || r.Verdict == NowDefault) {
			r.Today = "leave it out"
		}
		if r.Why == "" && r.Verdict == NowDefault {
			r.Why = "That is the default."
		}
	}
}

// check refuses a fact that could not be applied or verified. Every claim needs a source, because
// this package exists to replace pages of magic values without one.
func (f fact) check() error {
	if len(f.Rules) == 0 && len(f.Defaults) == 0 {
		return errors.New("says nothing")
	}
	if len(f.Defaults) > 0 && f.Source == "" {
		return errors.New("defaults without a source")
	}
	// Releases are read here once, so that a rule with one that makes no sense is found by the
	// tests and not by being silent.
	releases := []string{}
	for _, h := range f.Defaults {
		releases = append(releases, h.Since)
	}
	for _, r := range f.Rules {
		switch {
		case r.Verdict.Rank() < 0:
			return fmt.Errorf("verdict %q", r.Verdict)
		case r.Why == "" || r.Source == "":
			return errors.New("a rule needs why and source")
		}
		releases = append(releases, r.Since, r.Before)
	}
	for _, s := range releases {
		if s == "" {
			continue
		}
		if _, err := ParseRelease(f.OS, s); err != nil {
			return err
		}
	}
	return nil
}

// longestName bounds the names that facts are sought for, in bytes. The longest sysctl, with the
// longest name of an interface in it, has 80; a registry key may have 255 for each of its parts,
// and those of the facts have 130 in all.
const longestName = 512

// factsByName are the facts about one name each, by it.
var factsByName = sync.OnceValue(func() map[string][]fact {
	all := map[string][]fact{}
	for _, f := range facts() {
		if !strings.Contains(f.pattern, "*") {
			all[f.pattern] = append(all[f.pattern], f)
		}
	}
	return all
})

// patterns are the facts whose name has a star, by the last part of the name: there are two
// thousand of them, and most name one setting below any key.
type patterns struct {
	byEnd map[string][]fact // those without a star in the last part
	open  []fact            // the others
}

// end is the part of a name behind its last separator.
func end(name string) string { return name[strings.LastIndexAny(name, `\/.`)+1:] }

// factsByPattern are those whose name has a star.
var factsByPattern = sync.OnceValue(func() patterns {
	all := patterns{byEnd: map[string][]fact{}}
	for _, f := range facts() {
		head, _, wild := strings.Cut(f.pattern, "*")
		f.head = head
		switch last := end(f.pattern); {
		case !wild:
		case strings.Contains(last, "*"):
			all.open = append(all.open, f)
		default:
			all.byEnd[last] = append(all.byEnd[last], f)
		}
	}
	return all
})

// factOf returns the fact about a setting on a system. The one with exactly this name counts before
// every pattern, and of the patterns the most particular one, with the most letters beside its
// stars; of equal ones the first.
//
// A name that belongs to no setting may be as long as the text, and every pattern would look
// through it.
func factOf(o OS, name string) (fact, bool) {
	if len(name) > longestName {
		return fact{}, false
	}
	name = strings.ToLower(name)
	for _, f := range factsByName()[name] {
		if f.OS == "" || o.covers(f.OS) {
			return f, true
		}
	}
	best, most := fact{}, -1
	for _, some := range [][]fact{factsByPattern().byEnd[end(name)], factsByPattern().open} {
		for _, f := range some {
			if letters := len(f.pattern) - strings.Count(f.pattern, "*"); letters > most &&
				strings.HasPrefix(name, f.head) && (f.OS == "" || o.covers(f.OS)) && globs(f.pattern, name) {
				best, most = f, letters
			}
		}
	}
	return best, most >= 0
}

// globs reports whether s matches the pattern, in which * matches any text, even an empty one. Each
// piece between two stars is taken where it comes first: a later place leaves less to the others.
func globs(pattern, s string) bool {
	piece, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, piece)
	for ok {
		if piece, rest, wild = strings.Cut(rest, "*"); !wild {
			return strings.HasSuffix(s, piece)
		}
		_, s, ok = strings.Cut(s, piece)
	}
	return false
}

// bareNames are the names that stand for one setting wherever they are met, by kind: the last part
// of the name of every fact without a pattern in it. Where several facts have one last part, the
// tables name the setting, or else the first fact counts. Keys of the inner map are bare names,
// values full ones.
var bareNames = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	note := func(name string) {
		kind, rest, _ := strings.Cut(name, ":")
		bare := rest[strings.LastIndexAny(rest, `/\`)+1:]
		if bare == "" || strings.Contains(bare, "*") {
			return
		}
		if all[kind] == nil {
			all[kind] = map[string]string{}
		}
		if _, taken := all[kind][bare]; !taken {
			all[kind][bare] = plainName(name)
		}
	}
	for _, name := range tablesOf().bare {
		note(name)
	}
	for _, f := range facts() {
		note(f.Knob)
	}
	return all
})

// registryNames are the bare names of values of the registry in small letters, since their case
// does not count.
var registryNames = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for bare, full := range bareNames()["registry"] {
		all[strings.ToLower(bare)] = full
	}
	return all
})

// registryNamed returns the value of the registry that a name alone denotes, or nothing.
func registryNamed(name string) string {
	if full := bareNames()["registry"][name]; full != "" { // two may differ in their case alone
		return full
	}
	return registryNames()[strings.ToLower(name)]
}

// nearValue returns the value of the registry that a misspelt name resembles.
func nearValue(name string) string {
	const shortest = 10 // shorter names resemble each other by chance
	if len(name) < shortest {
		return ""
	}
	return end(registryNames()[resembling(name, maps.Keys(registryNames()))])
}

// tcpipPath is the registry key that advice on the network means when it does not name one.
const (
	tcpipPath = `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\`
	tcpipKey  = "registry:" + tcpipPath
)

// services are the beginnings of patterns of registry keys, with the key that they mean.
var services = strings.NewReplacer(`*\Tcpip*\Parameters\*`, `Tcpip\Parameters\`, `*\Tcpip*\`, `Tcpip\Parameters\`,
	`*\Lanman*\`, `LanmanServer\Parameters\`, `*\AFD\`, `AFD\`, `*\Dnscache\`, `Dnscache\`, `*\NetBT\`, `NetBT\`,
	`*\LanmanServer\`, `LanmanServer\`, `*\NDIS\`, `NDIS\`, `*\ServiceProvider\`, `Tcpip\ServiceProvider\`)

// plainName replaces the stars of a pattern by the place that a bare name refers to.
func plainName(pattern string) string {
	key, ok := strings.CutPrefix(pattern, "registry:")
	if !ok || strings.HasPrefix(key, "HKLM") {
		return strings.ReplaceAll(pattern, "e1000*", "e1000")
	}
	if keyword, ok := strings.CutPrefix(key, `*{4d36e972*\`); ok {
		return "registry:" + nicClass + `\` + keyword
	}
	const all = `HKLM\SYSTEM\CurrentControlSet\Services\`
	if plain := services.Replace(key); plain != key {
		return "registry:" + all + plain
	}
	if name := strings.TrimPrefix(key, `*\`); !strings.Contains(name, `\`) {
		return tcpipKey + name
	}
	return pattern // below a key that begins in several ways
}

// definition finds a Linux setting in the catalogue of knobs. Names with a variable in place of the
// interface (ethtool:$IF/ring.rx) are found as well, because the catalogue has a star there.
func definition(name string) (knob.Definition, bool) {
	if len(name) > longestName {
		return knob.Definition{}, false
	}
	id, err := knob.ParseID(name)
	if err != nil {
		return knob.Definition{}, false
	}
	return knob.Catalogue().Lookup(id)
}
