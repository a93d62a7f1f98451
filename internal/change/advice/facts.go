package advice

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/linerate/linerate/internal/change/knob"
)

// factFiles is the knowledge beyond the catalogue of knobs: the history of Linux settings, and the
// settings of other systems.
//
//go:embed facts/*.json
var factFiles embed.FS

// fact is the knowledge about one setting, or about all settings whose names match its pattern.
//
// Rules are tried in order; the first match decides. A comparison with the default comes after the
// rules that use the value and before the other rules, so that a list may end in a rule for every
// other value.
type fact struct {
	OS       OS        `json:"os,omitempty"` // empty: every system
	Knob     string    `json:"knob"`         // * matches any text; case is ignored
	Field    int       `json:"field,omitempty"`
	Lower    string    `json:"lower,omitempty"` // why a number under the default is harmful; empty: it is not
	Defaults []history `json:"defaults,omitempty"`
	Rules    []rule    `json:"rules,omitempty"`
	Today    string    `json:"today,omitempty"`  // for verdicts that come from the defaults
	Source   string    `json:"source,omitempty"` // for the same

	pattern string // Knob in small letters
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
// believed. Today is a command, a name or a value to type, or "leave it out".
type rule struct {
	Since   string   `json:"since,omitempty"`  // first release that it holds for
	Before  string   `json:"before,omitempty"` // first release that it no longer holds for
	Values  []string `json:"values,omitempty"` // the value is one of these
	Below   *int64   `json:"below,omitempty"`  // the number (of Field) is smaller
	Above   *int64   `json:"above,omitempty"`  // the number (of Field) is larger
	Verdict Verdict  `json:"verdict"`
	Why     string   `json:"why"`
	Today   string   `json:"today,omitempty"`
	Source  string   `json:"source"`
}

// asksValue reports whether the rule looks at the value.
func (r rule) asksValue() bool { return len(r.Values) > 0 || r.Below != nil || r.Above != nil }

// facts are all of them, in the order of the files; the first whose pattern fits counts.
var facts = sync.OnceValue(func() []fact {
	names, err := fs.Glob(factFiles, "facts/*.json")
	if err != nil {
		panic("built-in facts: " + err.Error())
	}
	var all []fact
	for _, name := range names {
		data, err := factFiles.ReadFile(name)
		if err == nil {
			var some []fact
			some, err = parseFacts(data)
			for i := range some {
				some[i].pattern = strings.ToLower(some[i].Knob)
			}
			all = append(all, some...)
		}
		if err != nil {
			// The data is part of this program and its tests parse it.
			panic(fmt.Sprintf("built-in facts: %s: %v", name, err))
		}
	}
	return all
})

// parseFacts reads one file and refuses facts that could not be applied or checked.
func parseFacts(data []byte) ([]fact, error) {
	// A misspelt key would silently make a rule hold always.
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var all []fact
	if err := dec.Decode(&all); err != nil {
		return nil, err
	}
	for _, f := range all {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Knob, err)
		}
	}
	return all, nil
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

// factOf returns the fact about a setting on a system. For each setting it tries some hundred
// facts, which takes milliseconds for the longest file in practice; the first match counts, so
// particular names come before patterns.
//
// A name that belongs to no setting may be as long as the text, and a pattern with three stars
// tries every pair of places in it.
func factOf(o OS, name string) (fact, bool) {
	if len(name) > longestName {
		return fact{}, false
	}
	name = strings.ToLower(name)
	for _, f := range facts() {
		if (f.OS == "" || o.covers(f.OS)) && globs(f.pattern, name) {
			return f, true
		}
	}
	return fact{}, false
}

// globs reports whether s matches the pattern, in which * matches any text, even an empty one.
// Patterns are ours and have few stars, so trying every place for each costs little; names come
// from the text and may be long.
func globs(pattern, s string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, first)
	if !ok {
		return false
	}
	for i := range len(s) + 1 {
		if globs(rest, s[i:]) {
			return true
		}
	}
	return false
}

// bareNames are the names that stand for one setting wherever they are met, by kind: the last part
// of the name of every fact without a pattern in it. Keys of the inner map are bare names, values
// full ones.
var bareNames = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, f := range facts() {
		kind, rest, _ := strings.Cut(f.Knob, ":")
		bare := rest[strings.LastIndexAny(rest, `/\`)+1:]
		if bare == "" || strings.Contains(bare, "*") {
			continue
		}
		if all[kind] == nil {
			all[kind] = map[string]string{}
		}
		if _, taken := all[kind][bare]; !taken {
			all[kind][bare] = plainNames.Replace(f.Knob)
		}
	}
	return all
})

// plainNames replaces the stars of patterns by the place that a bare name refers to.
var plainNames = strings.NewReplacer(`registry:*\`, `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\`,
	"e1000*", "e1000")

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
