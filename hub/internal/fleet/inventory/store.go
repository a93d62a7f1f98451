package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Host is one host as the hub knows it.
type Host struct {
	ID      string
	Name    string
	State   string
	Groups  []string
	Labels  map[string]string
	Version string    // of linerate at the host; empty: not known
	Last    time.Time // when it last spoke; zero: not since the hub started
	Beats   int64     // signs of life since the hub started

	FactsHash string // of the facts in Facts
	Facts     *Facts // nil: not fetched yet; never changed
	Class     string
	Differs   int // settings in which it differs from its class
}

// Values implements selection.Host.
func (h *Host) Values(key string) []string {
	one := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	switch key {
	case "host":
		return one(h.Name)
	case "id":
		return one(h.ID)
	case "state":
		return one(h.State)
	case "group":
		return h.Groups
	case "site", "rack", "role":
		return one(h.Labels[key])
	case "version":
		return one(h.Version)
	case "class":
		return one(h.Class)
	case "differs":
		return one(strconv.Itoa(h.Differs))
	}
	if label, ok := strings.CutPrefix(key, "label."); ok {
		return one(h.Labels[label])
	}
	f := h.Facts
	if f == nil {
		return nil
	}
	switch key {
	case "finding":
		return f.Findings
	case "drift":
		if f.JournalNotRead != "" {
			return nil
		}
		if f.Drift() > 0 {
			return []string{"yes"}
		}
		return []string{"no"}
	case "kernel":
		return one(f.Kernel)
	case "driver":
		var all []string
		for _, c := range f.Cards {
			all = append(all, c.Driver)
		}
		return all
	case "virtual":
		return one(cmp.Or(f.Virtualization, "no"))
	case "os":
		return one(f.OS)
	case "arch":
		return one(f.Arch)
	case "cpu":
		return one(f.CPU)
	case "cpus":
		return one(strconv.Itoa(f.CPUs))
	}
	return nil
}

// Knob implements selection.Host.
func (h *Host) Knob(name string) (string, bool) {
	if h.Facts == nil {
		return "", false
	}
	v, ok := h.Facts.Settings[strings.TrimPrefix(name, "sysctl:")]
	return v, ok
}

// Seen implements selection.Host.
func (h *Host) Seen() time.Time { return h.Last }

// Store holds all hosts. Its methods may be called from any number of goroutines.
type Store struct {
	mu    sync.Mutex
	hosts map[string]*Host
	dirty bool // Differs is older than the facts
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{hosts: make(map[string]*Host)} }

// Set notes what the register says of a host.
func (s *Store) Set(id, name, state string, groups []string, labels map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[id]
	if h == nil {
		h = &Host{ID: id}
		s.hosts[id] = h
	}
	h.Name, h.State, h.Groups, h.Labels = name, state, groups, labels
	if h.Facts != nil && h.Facts.Name != "" {
		h.Name = h.Facts.Name
	}
}

// Forget removes a host.
func (s *Store) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hosts, id)
	s.dirty = true
}

// Beat notes a sign of life, and reports whether the facts with that hash are missing here.
func (s *Store) Beat(id, version, hash string, now time.Time) (missing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[id]
	if h == nil {
		return false
	}
	h.Last, h.Version = now, unique.Make(version).Value()
	h.Beats++
	return hash != "" && h.FactsHash != hash
}

// Put keeps the facts of a host.
func (s *Store) Put(id, hash string, f Facts) {
	intern(&f)
	class := unique.Make(f.Class()).Value()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[id]
	if h == nil {
		return
	}
	h.Facts, h.FactsHash, h.Class = &f, hash, class
	if f.Name != "" {
		h.Name = f.Name
	}
	s.dirty = true
}

// intern shares texts that many hosts have: the settings of ten thousand hosts are mostly the same.
func intern(f *Facts) {
	one := func(p *string) { *p = unique.Make(*p).Value() }
	for _, p := range []*string{&f.OS, &f.Kernel, &f.Arch, &f.Virtualization, &f.CPU, &f.Version} {
		one(p)
	}
	for i := range f.Cards {
		c := &f.Cards[i]
		for _, p := range []*string{&c.Name, &c.Driver, &c.DriverVersion, &c.Firmware, &c.Model, &c.RxRing} {
			one(p)
		}
	}
	settings := make(map[string]string, len(f.Settings))
	for k, v := range f.Settings {
		settings[unique.Make(k).Value()] = unique.Make(v).Value()
	}
	f.Settings = settings
	for i := range f.Findings {
		one(&f.Findings[i])
	}
}

// Hosts returns all hosts, sorted by name and then id. What they point to is shared and never
// changed.
func (s *Store) Hosts() []Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compare()
	all := make([]Host, 0, len(s.hosts))
	for _, h := range s.hosts {
		all = append(all, *h)
	}
	sorting.Func(all, func(a, b Host) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all
}

// FactsHash returns the hash of the facts of a host that are here. It is asked for each host that
// speaks, so it does not compare the hosts first, as Hosts does.
func (s *Store) FactsHash(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[id]; h != nil {
		return h.FactsHash
	}
	return ""
}

// When a value is that of a class.
const (
	usualShare = 0.8
	usualHosts = 3
)

// Difference is a setting in which one host is not like its class.
type Difference struct {
	Knob  string  `json:"knob"`
	Value string  `json:"value,omitempty"` // absent: the host does not have it
	Usual string  `json:"usual"`
	Share float64 `json:"share_ratio"` // of the class that has the usual value
}

// usual is the value of a setting in a class.
type usual struct {
	value string
	share float64
}

// usuals returns the settings of which a class has one value. The caller holds s.mu.
func usuals(hosts []*Host) map[string]usual {
	counts := make(map[string]map[string]int)
	known := 0
	for _, h := range hosts {
		if h.Facts == nil {
			continue
		}
		known++
		for k, v := range h.Facts.Settings {
			if counts[k] == nil {
				counts[k] = make(map[string]int)
			}
			counts[k][v]++
		}
	}
	out := make(map[string]usual)
	for k, values := range counts {
		for v, n := range values {
			if share := float64(n) / float64(known); n >= usualHosts && share >= usualShare {
				out[k] = usual{v, share}
			}
		}
	}
	return out
}

func (s *Store) classes() map[string][]*Host {
	byClass := make(map[string][]*Host)
	for _, h := range s.hosts {
		if h.Class != "" {
			byClass[h.Class] = append(byClass[h.Class], h)
		}
	}
	return byClass
}

// compare counts the differences of all hosts, if facts have changed. The caller holds s.mu.
func (s *Store) compare() {
	if !s.dirty {
		return
	}
	s.dirty = false
	for _, hosts := range s.classes() {
		u := usuals(hosts)
		for _, h := range hosts {
			h.Differs = len(differences(h, u))
		}
	}
}

func differences(h *Host, u map[string]usual) []Difference {
	if h.Facts == nil {
		return nil
	}
	var out []Difference
	for k, want := range u {
		if v := h.Facts.Settings[k]; v != want.value {
			out = append(out, Difference{Knob: k, Value: v, Usual: want.value, Share: want.share})
		}
	}
	return out
}

// Outliers returns in what a host differs from its class, sorted by the name of the setting.
func (s *Store) Outliers(id string) []Difference {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[id]
	if h == nil || h.Class == "" {
		return nil
	}
	var like []*Host
	for _, other := range s.hosts {
		if other.Class == h.Class {
			like = append(like, other)
		}
	}
	out := differences(h, usuals(like))
	sorting.Func(out, func(a, b Difference) int { return strings.Compare(a.Knob, b.Knob) })
	return out
}

// Class is a class and what is known of its hosts.
type Class struct {
	Name     string         `json:"name"`
	Hosts    int            `json:"hosts"`
	Differ   int            `json:"differing_hosts"` // that differ from it in any setting
	Drifted  int            `json:"drifted_hosts"`
	Silent   int            `json:"silent_hosts"`
	Findings map[string]int `json:"findings,omitempty"` // hosts by code
}

// Summarize counts hosts by class, the largest class first. A host is silent if it has not spoken
// since then.
func Summarize(hosts []Host, since time.Time) []Class {
	byName := make(map[string]*Class)
	for i := range hosts {
		h := &hosts[i]
		name := cmp.Or(h.Class, "unknown")
		c := byName[name]
		if c == nil {
			c = &Class{Name: name, Findings: make(map[string]int)}
			byName[name] = c
		}
		c.Hosts++
		if h.Differs > 0 {
			c.Differ++
		}
		if h.Last.Before(since) {
			c.Silent++
		}
		if h.Facts != nil {
			if h.Facts.Drift() > 0 {
				c.Drifted++
			}
			for _, code := range h.Facts.Findings {
				c.Findings[code]++
			}
		}
	}
	var out []Class
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	sorting.StableFunc(out, func(a, b Class) int { return cmp.Compare(b.Hosts, a.Hosts) })
	return out
}
