package nicstat

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Class sorts counters by what can be done about them.
type Class string

// The classes.
const (
	RingFull   Class = "ring-full"   // no free descriptor: the host was too slow for the burst, or the ring too short
	NoMemory   Class = "no-memory"   // the kernel had no buffer to give
	Bus        Class = "bus"         // the way between card and memory was too slow
	Damaged    Class = "damaged"     // broken on the wire: cable, connector, transceiver
	Size       Class = "size"        // too long or too short: two ends that disagree about the MTU
	HalfDuplex Class = "half-duplex" // collisions and what comes of them
	Link       Class = "link"        // the link went away
	Unwanted   Class = "unwanted"    // nobody here was waiting for it
	Held       Class = "held"        // not lost but kept waiting
	Allowance  Class = "allowance"   // the cloud's limit for this machine
	Reset      Class = "reset"       // the driver gave up on the card and started it anew
	Software   Class = "software"    // the kernel or the driver would not have it
)

// classes are all there are; the data is checked against them.
var classes = []Class{RingFull, NoMemory, Bus, Damaged, Size, HalfDuplex, Link, Unwanted, Held, Allowance,
	Reset, Software}

// dropClasses are those whose counters are of lost packets, unless they say otherwise. Damaged and
// unwanted packets are not missed by anybody on this host.
var dropClasses = []Class{RingFull, NoMemory, Bus, Allowance, Software}

// eventMark ends the meaning of a counter that counts events and not packets.
const eventMark = "(an event)"

// Entry is what one counter means.
type Entry struct {
	Class   Class
	Meaning string // one line that can stand behind the number
	Source  string
	// Drop: each count is a packet that came whole, was wanted, and was lost here. Other counters
	// are of broken or unwanted packets, of packets that only waited, or of events.
	Drop bool
}

// group is one family of drivers in counters.json.
type group struct {
	Drivers  []string  `json:"drivers"` // "*": all that have no entry of their own
	Source   string    `json:"source"`
	Counters []counter `json:"counters"`
}

// counter is one entry; Source overrides that of its group.
type counter struct {
	Name    string `json:"name"`
	Class   Class  `json:"class"`
	Meaning string `json:"meaning"`
	Source  string `json:"source,omitempty"`
	Kept    bool   `json:"kept,omitempty"` // of a class of drops, and what it counts need not be lost
}

//go:embed counters.json
var data []byte

// dictionary is by driver and then by pattern. It is read at first use: most runs of the program
// never need it.
var dictionary = sync.OnceValue(func() map[string]map[string]Entry {
	d, err := parse(data)
	if err != nil {
		// The data is part of the program and tested with it; a program without it would answer
		// "not known" to everything.
		panic(err)
	}
	return d
})

func parse(b []byte) (map[string]map[string]Entry, error) {
	var groups []group
	if err := json.Unmarshal(b, &groups); err != nil {
		return nil, fmt.Errorf("read dictionary of counters: %w", err)
	}
	d := make(map[string]map[string]Entry)
	for _, g := range groups {
		for _, driver := range g.Drivers {
			if d[driver] == nil {
				d[driver] = make(map[string]Entry)
			}
			for _, c := range g.Counters {
				if _, twice := d[driver][c.Name]; twice {
					return nil, fmt.Errorf("read dictionary of counters: %s has %s twice", driver, c.Name)
				}
				e := Entry{Class: c.Class, Meaning: c.Meaning, Source: c.Source}
				e.Drop = slices.Contains(dropClasses, c.Class) && !c.Kept && !strings.HasSuffix(c.Meaning, eventMark)
				if e.Source == "" {
					e.Source = g.Source
				}
				if !slices.Contains(classes, e.Class) || e.Meaning == "" || e.Source == "" {
					return nil, fmt.Errorf("read dictionary of counters: %s of %s: class %q, meaning %q, source %q",
						c.Name, driver, e.Class, e.Meaning, e.Source)
				}
				d[driver][c.Name] = e
			}
		}
	}
	return d, nil
}

// Lookup tells what a counter of a driver means. False: it is not in the dictionary, as most are
// not.
func Lookup(driver, name string) (Entry, bool) {
	d := dictionary()
	for _, of := range []string{driver, "*"} {
		if e, ok := d[of][name]; ok {
			return e, true
		}
		if e, ok := d[of][pattern(name)]; ok {
			return e, true
		}
	}
	return Entry{}, false
}

// Drivers lists those that have entries of their own, sorted.
func Drivers() []string {
	var names []string
	for name := range dictionary() {
		if name != "*" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// pattern puts a number sign for every run of digits.
func pattern(name string) string {
	if !strings.ContainsAny(name, "0123456789") {
		return name
	}
	var b strings.Builder
	inNumber := false
	for _, r := range name {
		isDigit := r >= '0' && r <= '9'
		if isDigit && !inNumber {
			b.WriteByte('#')
		}
		if !isDigit {
			b.WriteRune(r)
		}
		inNumber = isDigit
	}
	return b.String()
}
