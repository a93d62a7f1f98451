package knob

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// catalogueFiles holds one file per kind of knob.
//
//go:embed catalogue/*.json
var catalogueFiles embed.FS

// catalogueOrder is the order in which the kinds are listed: by how often users look for one.
var catalogueOrder = []string{KindSysctl, KindLink, KindEthtool, KindQueue, KindQdisc, KindIRQ, KindRoute, KindModule,
	KindCPU, KindPCI, KindBlock, KindNFS, KindNamed, KindUnbound, KindKresd}

// Catalog is a set of definitions, in the order of the data file: by subject, not by name. It is
// safe for concurrent use.
//
// Exact holds every definition by its pattern, so that most look-ups (sysctls without wildcards)
// are one access to a map; only the few with a star are compared one by one.
type Catalog struct {
	kinds       map[string]func() *Catalog // the built-in one on Linux: each kind, parsed at first use
	whole       func() *Catalog            // and all of them
	definitions []Definition
	own         int // the first of them are of this system, where that is not Linux
	exact       map[ID]int
	patterns    map[string][]int // indices of definitions with wildcards, by kind
}

// Catalogue returns the catalogue that is built in. It is parsed at first use and never changes: on
// Linux by kind, because the whole takes 3 ms and most processes look up knobs of one or two kinds.
func Catalogue() *Catalog { return builtIn() }

// builtIn is a constant that the language cannot express as one.
var builtIn = sync.OnceValue(func() *Catalog {
	own := systemCatalogue()
	if len(own) == 0 {
		return byKind()
	}
	all := slices.Clone(own)
	for _, kind := range catalogueOrder {
		all = append(all, builtInFile(kind))
	}
	c := mustParse(all...)
	c.own = len(mustParse(own...).definitions)
	return c
})

// byKind returns the catalogue of Linux, of which each kind has a file.
func byKind() *Catalog {
	c := &Catalog{kinds: make(map[string]func() *Catalog)}
	for _, kind := range catalogueOrder {
		c.kinds[kind] = sync.OnceValue(func() *Catalog { return mustParse(builtInFile(kind)) })
	}
	c.whole = sync.OnceValue(func() *Catalog {
		all := new(Catalog)
		for _, kind := range catalogueOrder {
			all.definitions = append(all.definitions, c.kinds[kind]().definitions...)
		}
		return all
	})
	return c
}

func builtInFile(kind string) []byte {
	data, err := catalogueFiles.ReadFile("catalogue/" + kind + ".json")
	if err != nil {
		panic("built-in catalogue: " + err.Error())
	}
	return data
}

// mustParse panics where the data is not a catalogue: it is part of this program, and its tests
// parse it.
func mustParse(parts ...[]byte) *Catalog {
	c, err := ParseCatalog(parts...)
	if err != nil {
		panic("built-in catalogue: " + err.Error())
	}
	return c
}

// ParseCatalog reads a catalogue: JSON arrays of definitions, one after the other. Unknown keys,
// doubled names and definitions that contradict themselves are errors.
//
// It is exported for tests and for tools that check a catalogue before it is built in. The program
// itself reads no catalogue from disk, because the permitted actions on a knob must not depend on
// an editable file.
func ParseCatalog(parts ...[]byte) (*Catalog, error) {
	c := &Catalog{exact: make(map[ID]int), patterns: make(map[string][]int)}
	for _, data := range parts {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		var definitions []Definition
		if err := dec.Decode(&definitions); err != nil {
			return nil, fmt.Errorf("parse catalogue: %w", err)
		}
		c.definitions = append(c.definitions, definitions...)
	}
	for i, d := range c.definitions {
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("parse catalogue: %s: %w", d.Pattern, err)
		}
		c.definitions[i].Undo = UndoOf(d.Pattern, d.Effect, d.Disturbance)
		if _, double := c.exact[d.Pattern]; double {
			return nil, fmt.Errorf("parse catalogue: %s: given twice", d.Pattern)
		}
		c.exact[d.Pattern] = i
		if strings.Contains(string(d.Pattern), "*") {
			kind := d.Pattern.Kind()
			c.patterns[kind] = append(c.patterns[kind], i)
		}
	}
	return c, nil
}

// check returns what would make a definition useless or dangerous.
//
// Symptom, expected effect, risk, owner and source are as mandatory as the name: a knob without a
// reason to change it, an expected effect and a known cost does not belong in an experiment on a
// user's host.
func (d Definition) check() error {
	id, err := parseID(string(d.Pattern))
	switch {
	case err != nil:
		return err
	case id != d.Pattern:
		return fmt.Errorf("canonical name is %s", id)
	case d.Title == "" || d.What == "" || d.Symptom == "" || d.Expect == "" || d.Risk == "" || d.Persist == "" ||
		d.Source == "":
		return errors.New("title, what, symptom, expect, risk, persist and source are needed")
	case d.Min != nil && d.Max != nil && *d.Min > *d.Max:
		return errors.New("empty range")
	case d.Form == FormInts && d.Count < 2:
		return errors.New("form ints needs a count of at least 2")
	case d.Disturbance < DisturbsNothing || d.Disturbance > DisturbsHost:
		return fmt.Errorf("disturbance %d", d.Disturbance)
	case !slices.Contains([]Form{FormInt, FormInts, FormBool, FormSwitch, FormWord, FormList, FormRanges, FormMask,
		FormText, FormOption}, d.Form):
		return fmt.Errorf("form %q", d.Form)
	case !slices.Contains([]Scope{ScopeGlobal, ScopeNamespace, ScopeDevice, ScopeRoute, ScopeSocket,
		ScopeProgram}, d.Scope):
		return fmt.Errorf("scope %q", d.Scope)
	case !slices.Contains([]Effect{EffectNow, EffectNewSockets, EffectAtListen, EffectNewQdisc, EffectAtLoad,
		EffectAtMount, EffectAtReload, EffectAtRestart, EffectAtBoot}, d.Effect):
		return fmt.Errorf("effect %q", d.Effect)
	case d.Undo != "":
		return errors.New("undo follows from effect and disturbance")
	}
	return nil
}

// All lists the definitions in the order of the data file.
func (c *Catalog) All() []Definition { return slices.Clone(c.listed()) }

// listed returns all definitions, which the caller must not change.
func (c *Catalog) listed() []Definition {
	if c.whole != nil {
		return c.whole().definitions
	}
	return c.definitions
}

// Own lists the definitions of this system. Other systems than Linux know those of Linux too,
// because they judge advice for it and read documents of its hosts.
func (c *Catalog) Own() []Definition {
	if c.own == 0 {
		return c.All()
	}
	return slices.Clone(c.definitions[:c.own])
}

// Lookup returns the definition of a knob: the one of that name, or the one whose pattern fits best
// (fewest wildcards).
//
// Fewest wildcards wins, so that net.ipv4.conf.all.rp_filter can have its own definition beside
// that of net.ipv4.conf.*.rp_filter.
func (c *Catalog) Lookup(id ID) (Definition, bool) {
	if kind, ok := c.kinds[id.Kind()]; ok {
		return kind().Lookup(id)
	}
	if i, ok := c.exact[id]; ok {
		return c.definitions[i], true
	}
	best := -1
	for _, i := range c.patterns[id.Kind()] {
		if matches(c.definitions[i].Pattern, id) && (best < 0 || wildcards(i, c) < wildcards(best, c)) {
			best = i
		}
	}
	if best < 0 {
		return Definition{}, false
	}
	return c.definitions[best], true
}

// ParseTyped reads a knob's name as a person types it, without its kind if the catalogue has it as
// a sysctl. Errors are those of [ParseID].
func (c *Catalog) ParseTyped(s string) (ID, error) {
	if id, err := ParseID(WithKind(s)); err == nil {
		if _, known := c.Lookup(id); known {
			return id, nil
		}
	}
	return ParseID(s)
}

// Discloses reports whether others than root may learn the value of a knob: it is in the catalogue,
// and not a secret there.
func (c *Catalog) Discloses(id ID) bool {
	d, known := c.Lookup(id)
	return known && !d.Secret
}

func wildcards(i int, c *Catalog) int { return strings.Count(string(c.definitions[i].Pattern), "*") }

// Fits reports whether a pattern matches a knob, where * matches one part of a name or a piece of
// it.
func (id ID) Fits(pattern ID) bool { return matches(pattern, id) }

// matches compares part by part: * matches any text within one element of a sysctl's path, within a
// subject, or within an attribute.
//
// Sysctls are compared by path element and not by dots, because an element may contain dots (the
// directory of a VLAN interface).
func matches(pattern, id ID) bool {
	if pattern.Kind() != id.Kind() {
		return false
	}
	var p, s []string
	if id.Kind() == KindSysctl {
		p, s = pattern.Path(), id.Path()
	} else {
		ps, pa := pattern.split()
		ss, sa := id.split()
		p, s = []string{ps, pa}, []string{ss, sa}
		// An interface and one of its queues, each with a star of its own.
		if id.Kind() == KindQueue {
			p, s = strings.Split(pattern.rest(), "/"), strings.Split(id.rest(), "/")
		}
	}
	if len(p) != len(s) || len(p) == 0 {
		return false
	}
	for i := range p {
		if !matchPart(p[i], s[i]) {
			return false
		}
	}
	return true
}

// matchPart supports only one *, which is all that the catalogue needs; it may match slashes
// (10.0.0.0/8) but not the empty text.
func matchPart(pattern, s string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == s
	}
	return len(s) > len(before)+len(after) && strings.HasPrefix(s, before) && strings.HasSuffix(s, after)
}

// Match returns the definitions that a user's pattern selects, in catalogue order: all for the
// empty one; those whose name a glob matches (* ? [ ], with or without the kind); otherwise those
// with the text in name or title, in any case. The full name of one knob finds the definition that
// covers it.
//
// The empty pattern finds all because every name contains the empty text. A glob without a kind is
// compared with the name after the colon, so that 'net.core.*' works as users expect.
func (c *Catalog) Match(pattern string) []Definition {
	var out []Definition
	pattern = strings.TrimSpace(pattern)
	if id, err := parseID(pattern); err == nil && !strings.ContainsAny(pattern, "*?[") {
		if d, ok := c.Lookup(id); ok {
			return []Definition{d}
		}
	}
	glob := strings.ContainsAny(pattern, "*?[")
	text := strings.ToLower(pattern)
	for _, d := range c.listed() {
		name := strings.ToLower(string(d.Pattern))
		if ID(name).FitsTyped(text) || !glob && strings.Contains(strings.ToLower(d.Title), text) {
			out = append(out, d)
		}
	}
	return out
}

// FitsTyped reports whether a user's pattern selects a name: a glob that matches it with or without
// the kind, or a part of it. The empty pattern selects all.
func (id ID) FitsTyped(pattern string) bool {
	return fits(pattern, string(id)) || fits(pattern, id.rest()) || strings.Contains(string(id), pattern)
}

// fits is a glob in which * crosses slashes.
//
// path.Match stops a star at a slash. In knob names slashes separate subject and attribute, or
// replace a dot, and users who type a star do not think of them; so both sides have them replaced
// by a byte that no name contains.
func fits(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x01")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok && err == nil
}
