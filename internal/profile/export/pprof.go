package export

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/linerate/linerate/internal/profile"
)

// Fields of proto/profile.proto of google/pprof.
const (
	pprofSampleType  = 1
	pprofSample      = 2
	pprofMapping     = 3
	pprofLocation    = 4
	pprofFunction    = 5
	pprofStrings     = 6
	pprofTime        = 9
	pprofDuration    = 10
	pprofPeriodType  = 11
	pprofPeriod      = 12
	pprofComment     = 13
	pprofDefaultType = 14
)

// pprofWriter builds the message and its table of strings.
type pprofWriter struct {
	out     message
	strings []string
	index   map[string]uint64
}

func (w *pprofWriter) text(s string) uint64 {
	if n, known := w.index[s]; known {
		return n
	}
	n := uint64(len(w.strings))
	w.strings = append(w.strings, s)
	w.index[s] = n
	return n
}

// valueType is the pair of a name and a unit.
func (w *pprofWriter) valueType(name, unit string) message {
	var m message
	m.number(1, w.text(name))
	m.number(2, w.text(unit))
	return m
}

// Pprof writes the compressed profile that go tool pprof, Pyroscope and Grafana read. Its labels
// are stage, work and context. Every location has a function and its mapping says so, because pprof
// otherwise drops names of the kernel.
func Pprof(w io.Writer, p *profile.Profile, began int64) error {
	b := &pprofWriter{index: make(map[string]uint64)}
	b.text("") // number 0 is empty by definition
	weight, unit := weightOf(p)
	timed := unit == "nanoseconds"
	b.out.bytes(pprofSampleType, b.valueType("samples", "count"))
	if timed {
		b.out.bytes(pprofSampleType, b.valueType("cpu", "nanoseconds"))
	}
	for _, s := range p.Stacks {
		var m, locations, values message
		for _, f := range s.Functions {
			locations.varint(uint64(f + 1))
		}
		values.varint(s.Samples)
		if timed {
			values.varint(uint64(float64(s.Samples) * weight))
		}
		m.bytes(1, locations)
		m.bytes(2, values)
		for _, label := range [...][2]string{{"stage", s.Stage}, {"work", s.Work}, {"context", s.Context}} {
			var l message
			l.number(1, b.text(label[0]))
			l.number(2, b.text(label[1]))
			m.bytes(3, l)
		}
		b.out.bytes(pprofSample, m)
	}
	for i, name := range []string{"[kernel.kallsyms]_text", "[programs]"} {
		var m message
		m.number(1, uint64(i+1))
		m.number(5, b.text(name))
		m.number(7, 1) // has_functions
		b.out.bytes(pprofMapping, m)
	}
	for i, f := range p.Functions {
		var location, line, function message
		location.number(1, uint64(i+1))
		location.number(2, mappingOf(f))
		line.number(1, uint64(i+1))
		location.bytes(4, line)
		b.out.bytes(pprofLocation, location)
		function.number(1, uint64(i+1))
		function.number(2, b.text(f.Name))
		function.number(3, b.text(f.Name))
		function.number(4, b.text(f.Stage))
		b.out.bytes(pprofFunction, function)
	}
	b.out.number(pprofTime, uint64(began))
	b.out.number(pprofDuration, uint64(p.Duration*1e9))
	if timed && p.Timer {
		b.out.bytes(pprofPeriodType, b.valueType("cpu", "nanoseconds"))
	} else {
		b.out.bytes(pprofPeriodType, b.valueType(p.Event, "count"))
	}
	b.out.number(pprofPeriod, p.Period)
	for _, c := range comments(p) {
		b.out.number(pprofComment, b.text(c))
	}
	if timed {
		b.out.number(pprofDefaultType, b.text("cpu"))
	}
	for _, s := range b.strings {
		b.out.bytes(pprofStrings, message(s))
	}
	packed := gzip.NewWriter(w)
	_, err := packed.Write(b.out)
	if err = errors.Join(err, packed.Close()); err != nil {
		return fmt.Errorf("write pprof file: %w", err)
	}
	return nil
}

func mappingOf(f profile.Row) uint64 {
	if f.Stage == profile.StageUser || f.Stage == profile.StageGuest {
		return 2
	}
	return 1
}

// comments carry what the figures cannot see.
func comments(p *profile.Profile) []string {
	all := []string{"event " + p.Event, fmt.Sprintf("%d busy samples, %d lost", p.Busy, p.Lost)}
	if p.Timer {
		all = append(all, fmt.Sprintf("timer: %d samples were moved to the callers of what allows interrupts again", p.Moved))
	}
	if p.PacketsTotal != nil {
		all = append(all, fmt.Sprintf("%d packets", *p.PacketsTotal))
	}
	return append(all, p.Warnings...)
}

// message is a protocol buffer under construction. Zero values are left out, as the format has it.
type message []byte

func (m *message) varint(v uint64) {
	for v >= 0x80 {
		*m = append(*m, byte(v)|0x80)
		v >>= 7
	}
	*m = append(*m, byte(v))
}

//go:noinline // its copies, with varint in them, took 6 kB
func (m *message) number(field int, v uint64) {
	if v == 0 {
		return
	}
	m.varint(uint64(field) << 3)
	m.varint(v)
}

//go:noinline // its copies, with varint in them, took 7 kB
func (m *message) bytes(field int, b message) {
	m.varint(uint64(field)<<3 | 2)
	m.varint(uint64(len(b)))
	*m = append(*m, b...)
}
