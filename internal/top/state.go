package top

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// View is a page of the screen.
type View int

// The views.
const (
	Overview View = iota
	Detail
	Connections
	Processors
	Verdicts
	Help
)

// remembered is how many readings of an interface are kept for its curve.
const remembered = 120

// Verdict is the last verdict on the host.
type Verdict struct {
	Time     time.Time // zero: not yet
	Findings []evidence.Finding
	Err      error
}

// Journal is the latest changes of the host.
type Journal struct {
	Changes []journal.Change // newest first
	Err     error
}

// Moved are the counters of a driver that changed, and the interrupts of its interface.
type Moved struct {
	Interface  string
	Counters   []Counter // the fastest first
	Interrupts []Served  // the busiest first
	Err        error
}

// Served is one interrupt and the processors that served it.
type Served struct {
	Number int
	Name   string
	Rate   float64 // each second, on all processors
	CPUs   []OnCPU // the busiest first
}

// OnCPU is the share of one processor.
type OnCPU struct {
	CPU  int
	Rate float64
}

// Counter is one counter of a driver.
type Counter struct {
	Name string
	Rate float64 // each second
}

// State is everything that the screen depends on.
type State struct {
	host     string
	interval time.Duration
	glyphs   *glyphs
	bare     bool // a table for scripts: without a marked row and without curves

	last   *Reading // the newest
	shown  *Reading // what is drawn: the newest, unless paused
	paused bool
	trails map[string]*trail
	events []Event // newest first

	verdict Verdict
	journal Journal
	moved   Moved
	talk    Talk

	view     View
	before   View   // Help: the page before it
	name     string // selected interface
	first    int    // first row drawn
	scroll   int    // of the pages without a table
	page     int    // rows of the last screen, for the keys that move by a page
	sort     string
	reversed bool
	busyOnly bool
	filter   string
	typing   bool
	backup   string // the filter before typing
}

// trail is the history of an interface over the last readings, oldest first.
type trail struct{ in, out, drops []float64 }

func (t *trail) add(i *Interface) {
	add := func(s []float64, x float64) []float64 {
		if len(s) >= remembered {
			s = s[:copy(s, s[1:])]
		}
		return append(s, x)
	}
	t.in, t.out, t.drops = add(t.in, i.Receive), add(t.out, i.Transmit), add(t.drops, dropRate(i))
}

// Begin is the initial state of the screen.
type Begin struct {
	Host      string
	Interval  time.Duration
	ASCII     bool   // the terminal shows only ASCII
	Sort      string // name of a column; empty: traffic
	Filter    string
	Interface string // opened at once; empty: the overview
}

// NewState makes a screen without a reading.
func NewState(b Begin) *State {
	s := &State{host: b.Host, interval: b.Interval, glyphs: &wide, trails: map[string]*trail{}, sort: "traffic",
		filter: b.Filter, name: b.Interface}
	if b.ASCII {
		s.glyphs = &plain
	}
	if b.Sort != "" {
		s.sort = b.Sort
	}
	if b.Interface != "" {
		s.view = Detail
	}
	return s
}

// Reading adds one interval. A pause freezes the screen, but not the history.
func (s *State) Reading(r Reading) {
	s.last = &r
	if !s.paused {
		s.shown = &r
	}
	for name := range s.trails {
		if !slices.ContainsFunc(r.Interfaces, func(i Interface) bool { return i.Name == name }) {
			delete(s.trails, name)
		}
	}
	for i := range r.Interfaces {
		one := &r.Interfaces[i]
		if s.trails[one.Name] == nil {
			s.trails[one.Name] = &trail{}
		}
		s.trails[one.Name].add(one)
	}
	for _, e := range r.Events {
		s.events = slices.Insert(s.events, 0, e)
	}
	s.events = s.events[:min(len(s.events), 50)]
}

// Judged sets the verdict. A failed one keeps the findings of the previous one.
func (s *State) Judged(v Verdict) {
	if v.Err != nil && len(v.Findings) == 0 {
		v.Findings, v.Time = s.verdict.Findings, s.verdict.Time
	}
	s.verdict = v
}

// Changed sets the changes.
func (s *State) Changed(j Journal) { s.journal = j }

// Counted sets the counters of a driver.
func (s *State) Counted(m Moved) {
	if !s.paused {
		s.moved = m
	}
}

// Watched returns the interface whose counters are needed; empty: none.
func (s *State) Watched() string {
	if s.view == Detail {
		return s.name
	}
	return ""
}

// rows returns the interfaces of the overview.
func (s *State) rows() []Interface {
	if s.shown == nil {
		return nil
	}
	return arrange(s.shown.Interfaces, s.filter, s.sort, s.reversed, s.busyOnly)
}

// Key handles a key by the name that bubbletea gives it, and reports whether the user wants to
// quit.
func (s *State) Key(key string) (quit bool) {
	if key == "ctrl+c" {
		return true
	}
	if s.typing {
		s.typeFilter(key)
		return false
	}
	switch key {
	case "q":
		return true
	case "?", "h", "f1":
		if s.view != Help {
			s.open(Help)
		} else {
			s.open(s.before)
		}
	case "esc", "backspace":
		s.back()
	case "space", " ", "p":
		s.pause()
	case "n":
		s.toggle(Connections)
	case "c":
		s.toggle(Processors)
	case "f":
		s.toggle(Verdicts)
	case "/":
		if s.view == Overview || s.view == Processors {
			s.typing, s.backup = true, s.filter
		}
	case "i":
		s.busyOnly = !s.busyOnly
	case "r":
		s.reversed = !s.reversed
	case ">", ".", "right":
		s.nextColumn(1)
	case "<", ",", "left":
		s.nextColumn(-1)
	case "enter":
		if s.view == Overview && s.selected() != nil {
			s.name = s.selected().Name
			s.open(Detail)
		}
	case "tab":
		s.open(map[View]View{Overview: Connections, Connections: Processors, Processors: Verdicts,
			Verdicts: Overview, Detail: Overview}[s.view])
	default:
		s.move(key)
	}
	return false
}

func (s *State) open(v View) {
	if v == Help {
		s.before = s.view
	}
	s.view, s.scroll = v, 0
	if v != Detail {
		s.moved = Moved{}
	}
	if v != Connections && v != Help {
		s.talk = Talk{}
	}
}

func (s *State) toggle(v View) {
	if s.view == v {
		v = Overview
	}
	s.open(v)
}

// back leaves a page, or removes the filter.
func (s *State) back() {
	switch {
	case s.view == Help:
		s.open(s.before)
	case s.view != Overview:
		s.open(Overview)
	default:
		s.filter = ""
	}
}

func (s *State) pause() {
	s.paused = !s.paused
	if !s.paused {
		s.shown = s.last
	}
}

// nextColumn sorts by another column, in its own order: a reversal is seldom meant for the next
// column.
func (s *State) nextColumn(step int) {
	names := columnNames()
	at := slices.Index(names, s.sort)
	s.sort, s.reversed = names[(at+step+len(names))%len(names)], false
}

func (s *State) typeFilter(key string) {
	switch key {
	case "enter":
		s.typing = false
	case "esc":
		s.typing, s.filter = false, s.backup
	case "backspace":
		if s.filter != "" {
			_, size := utf8.DecodeLastRuneInString(s.filter)
			s.filter = s.filter[:len(s.filter)-size]
		}
	case "ctrl+u":
		s.filter = ""
	default:
		// A typed character has a name of one rune; other keys have longer names.
		if utf8.RuneCountInString(key) == 1 && len(s.filter) < 64 {
			s.filter += key
		}
	}
}

// selected returns the marked row; nil: the table is empty. The first row replaces one that is
// gone.
func (s *State) selected() *Interface {
	rows := s.rows()
	if len(rows) == 0 {
		return nil
	}
	return &rows[max(s.index(rows), 0)]
}

func (s *State) index(rows []Interface) int {
	return slices.IndexFunc(rows, func(i Interface) bool { return i.Name == s.name })
}

// move goes through the rows of the table, or scrolls a page.
func (s *State) move(key string) {
	page := max(s.page-1, 1)
	step, ok := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdown": page, "home": -1 << 20,
		"g": -1 << 20, "end": 1 << 20, "G": 1 << 20}[key]
	if !ok {
		return
	}
	if s.view != Overview {
		s.scroll = max(s.scroll+step, 0) // the layout of the page bounds it
		return
	}
	rows := s.rows()
	if len(rows) > 0 {
		s.name = rows[min(max(max(s.index(rows), 0)+step, 0), len(rows)-1)].Name
	}
}

// inWords is the state of a change, and why a trial is no longer what its state says.
func inWords(c journal.Change) string {
	text := string(c.State)
	if c.Unguarded {
		text += ", unguarded"
	}
	if c.State == journal.Trial && c.Note != "" {
		text += ", " + c.Note
	}
	return text
}

// newest returns changes and events together, newest first, as lines.
func (s *State) newest() []news {
	var all []news
	for _, c := range s.journal.Changes {
		text := "change " + c.ID + " " + string(c.Knob) + ": " + string(c.From) + " → " + string(c.To) + " (" +
			inWords(c) + ")"
		look := Look(0)
		if c.State == journal.Trial {
			look = Bold | Yellow
		}
		all = append(all, news{c.Time, text, look})
	}
	for _, e := range s.events {
		text := e.Text
		if e.Interface != "" && !strings.Contains(text, e.Interface) {
			text = e.Interface + ": " + text
		}
		look := Look(0)
		if e.Change == "link-down" || e.Change == "link-gone" {
			look = Bold | Yellow
		}
		all = append(all, news{e.Time, text, look})
	}
	sorting.StableFunc(all, func(a, b news) int { return b.time.Compare(a.time) })
	return all
}

type news struct {
	time time.Time
	text string
	look Look
}
