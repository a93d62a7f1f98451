package nicstat

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Class groups counters by the remedy.
type Class string

// The classes.
const (
	RingFull   Class = "ring-full"   // nothing to receive into: the host too slow for the burst, or the ring too short
	NoMemory   Class = "no-memory"   // the kernel had no buffer to give
	Bus        Class = "bus"         // the path between NIC and memory was too slow
	Damaged    Class = "damaged"     // broken on the wire: cable, connector, transceiver
	Size       Class = "size"        // too long or too short: the two ends disagree about the MTU
	HalfDuplex Class = "half-duplex" // collisions and their consequences
	Link       Class = "link"        // the link was lost
	Unwanted   Class = "unwanted"    // no program on this host waited for it
	Held       Class = "held"        // delayed, not lost
	Allowance  Class = "allowance"   // the cloud's limit for this machine
	Reset      Class = "reset"       // the driver reset the NIC
	Software   Class = "software"    // the kernel or the driver dropped it
)

// classes lists every class; the data is checked against it.
var classes = []Class{RingFull, NoMemory, Bus, Damaged, Size, HalfDuplex, Link, Unwanted, Held, Allowance,
	Reset, Software}

// dropClasses are the classes whose counters count lost packets, unless an entry says otherwise. No
// program on this host misses damaged and unwanted packets.
var dropClasses = []Class{RingFull, NoMemory, Bus, Allowance, Software}

// eventMark ends the meaning of a counter that counts events instead of packets.
const eventMark = "(an event)"

// Entry is the meaning of one counter.
type Entry struct {
	Class   Class
	Meaning string // one line that can follow the number
	Source  string
	// Drop reports that each count is a packet that arrived whole, was wanted, and was lost here.
	// Other counters count damaged or unwanted packets, packets that only waited, or events.
	Drop bool
	// Kept reports that the class is one of drops, but that what is counted need not be lost.
	Kept bool
}

// group is one family of drivers in counters.json.
type group struct {
	Drivers  []string  `json:"drivers"` // "*": every driver without an entry of its own
	Source   string    `json:"source"`
	Counters []counter `json:"counters"`
}

// counter is one entry; Source overrides that of its group.
type counter struct {
	Name    string   `json:"name"`
	Also    []string `json:"also,omitempty"` // other counters of the group with this meaning
	Class   Class    `json:"class"`
	Meaning string   `json:"meaning"`
	Source  string   `json:"source,omitempty"`
	Kept    bool     `json:"kept,omitempty"` // see [Entry]
}

//go:embed counters.json
var data []byte

// dictionary maps driver and pattern to an entry. It is parsed at first use, because most runs of
// the program never need it.
var dictionary = sync.OnceValue(func() map[string]map[string]Entry {
	d, err := parse(data)
	if err != nil {
		// The data is embedded and tested; without it every lookup would return "not known".
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
				e := Entry{Class: c.Class, Meaning: c.Meaning, Source: c.Source, Kept: c.Kept}
				e.Drop = slices.Contains(dropClasses, c.Class) && !c.Kept && !strings.HasSuffix(c.Meaning, eventMark)
				if e.Source == "" {
					e.Source = g.Source
				}
				if !slices.Contains(classes, e.Class) || e.Meaning == "" || e.Source == "" {
					return nil, fmt.Errorf("read dictionary of counters: %s of %s: class %q, meaning %q, source %q",
						c.Name, driver, e.Class, e.Meaning, e.Source)
				}
				for _, name := range append(c.Also, c.Name) {
					if _, twice := d[driver][name]; twice {
						return nil, fmt.Errorf("read dictionary of counters: %s has %s twice", driver, name)
					}
					d[driver][name] = e
				}
			}
		}
	}
	return d, nil
}

// Lookup returns what a counter of a driver means. ok is false if the dictionary has no entry, as
// for most counters.
func Lookup(driver, name string) (Entry, bool) {
	d := dictionary()
	for _, of := range []string{driver, "*"} {
		if e, ok := d[of][name]; ok {
			return e, true
		}
		if e, ok := d[of][shape(name)]; ok {
			return e, true
		}
	}
	return Entry{}, false
}

// Drivers lists the drivers that have entries of their own, sorted.
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

// shape replaces every run of digits with a number sign.
func shape(name string) string {
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
