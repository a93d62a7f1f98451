package foreign

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/profile"
)

// pprofFile is what a profile.proto of google/pprof holds, as far as stacks need it.
type pprofFile struct {
	strings   []string
	types     [][2]uint64 // name and unit of each value
	samples   []pprofSample
	locations map[uint64]pprofLocation
	functions map[uint64]uint64 // name
	mappings  map[uint64]uint64 // file
	period    uint64
}

type pprofSample struct{ locations, values []uint64 }

type pprofLocation struct {
	mapping   uint64
	functions []uint64 // innermost first
}

func (f *pprofFile) text(n uint64) string {
	if n < uint64(len(f.strings)) {
		return f.strings[n]
	}
	return ""
}

// parsePprof reads a packed profile. Of several values it takes the one in samples, or the first.
func parsePprof(packed []byte) (*profile.Profile, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	b, err := io.ReadAll(io.LimitReader(unpacked, MaxBytes+1))
	if err != nil || len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: unpack: %v", ErrFormat, err)
	}
	f := &pprofFile{locations: map[uint64]pprofLocation{}, functions: map[uint64]uint64{}, mappings: map[uint64]uint64{}}
	if err := fields(b, f.field); err != nil {
		return nil, err
	}
	value, event, seconds := 0, "samples", -1
	for i, t := range f.types {
		switch {
		case f.text(t[1]) == "count":
			value = i
		case f.text(t[1]) == "nanoseconds":
			seconds = i
			event = f.text(t[0])
		}
	}
	builder := profile.NewBuilder(event, false)
	var count, nanos float64
	for _, s := range f.samples {
		var frames []int
		for _, id := range s.locations {
			location := f.locations[id]
			file := f.text(f.mappings[location.mapping])
			for _, fn := range location.functions {
				if name := f.text(f.functions[fn]); name != "" && len(frames) < maxDepth {
					frames = append(frames, builder.Frame(profile.Frame{Name: name, Kind: pprofKind(file)}))
				}
			}
		}
		// A difference of two profiles has negative values, whose bits are large numbers.
		const most = 1 << 53
		if value >= len(s.values) || s.values[value] > most ||
			seconds >= 0 && seconds < len(s.values) && s.values[seconds] > most {
			continue
		}
		if len(frames) == 0 {
			frames = []int{builder.Frame(profile.Frame{Name: "no function", Kind: profile.UserFrame})}
		}
		builder.Add(profile.Seen{Frames: frames, Offset: -1, Count: s.values[value]})
		count += float64(s.values[value])
		if seconds >= 0 && seconds < len(s.values) {
			nanos += float64(s.values[seconds])
		}
	}
	w := profile.Window{}
	if seconds >= 0 && seconds != value && count > 0 {
		w.SampleSeconds = nanos * 1e-9 / count
	}
	return builder.Finish(w), nil
}

func pprofKind(file string) profile.Kind {
	if strings.Contains(file, "kernel") || strings.Contains(file, "vmlinux") || strings.HasSuffix(file, ".ko") {
		return profile.KernelFrame
	}
	return profile.UserFrame
}

// field takes one field of the outer message.
func (f *pprofFile) field(number int, v uint64, b []byte) error {
	switch number {
	case 1:
		var t [2]uint64
		err := fields(b, func(n int, v uint64, _ []byte) error {
			if n == 1 || n == 2 {
				t[n-1] = v
			}
			return nil
		})
		f.types = append(f.types, t)
		return err
	case 2:
		var s pprofSample
		err := fields(b, func(n int, v uint64, b []byte) error {
			switch n {
			case 1:
				return numbers(&s.locations, v, b)
			case 2:
				return numbers(&s.values, v, b)
			}
			return nil
		})
		f.samples = append(f.samples, s)
		return err
	case 3:
		var id, file uint64
		err := fields(b, func(n int, v uint64, _ []byte) error {
			switch n {
			case 1:
				id = v
			case 5:
				file = v
			}
			return nil
		})
		f.mappings[id] = file
		return err
	case 4:
		var id uint64
		var l pprofLocation
		err := fields(b, func(n int, v uint64, b []byte) error {
			switch n {
			case 1:
				id = v
			case 2:
				l.mapping = v
			case 4:
				return fields(b, func(n int, v uint64, _ []byte) error {
					if n == 1 {
						l.functions = append(l.functions, v)
					}
					return nil
				})
			}
			return nil
		})
		f.locations[id] = l
		return err
	case 5:
		var id, name uint64
		err := fields(b, func(n int, v uint64, _ []byte) error {
			switch n {
			case 1:
				id = v
			case 2:
				name = v
			}
			return nil
		})
		f.functions[id] = name
		return err
	case 6:
		f.strings = append(f.strings, string(b))
	case 12:
		f.period = v
	}
	return nil
}

// numbers appends a repeated number, packed or not.
func numbers(to *[]uint64, v uint64, b []byte) error {
	if b == nil {
		*to = append(*to, v)
		return nil
	}
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return fmt.Errorf("%w: number in a pprof message", ErrFormat)
		}
		*to = append(*to, n)
		b = b[size:]
	}
	return nil
}

// fields calls visit for each field of a message: with its number, or with its bytes (not nil).
func fields(b []byte, visit func(number int, v uint64, b []byte) error) error {
	for len(b) > 0 {
		key, size := binary.Uvarint(b)
		if size <= 0 {
			return fmt.Errorf("%w: key in a pprof message", ErrFormat)
		}
		b = b[size:]
		var v uint64
		var body []byte
		switch key & 7 {
		case 0:
			if v, size = binary.Uvarint(b); size <= 0 {
				return fmt.Errorf("%w: number in a pprof message", ErrFormat)
			}
			b = b[size:]
		case 1, 5:
			n := 8
			if key&7 == 5 {
				n = 4
			}
			if len(b) < n {
				return fmt.Errorf("%w: pprof message ends early", ErrFormat)
			}
			b = b[n:]
		case 2:
			n, size := binary.Uvarint(b)
			if size <= 0 || n > uint64(len(b)-size) {
				return fmt.Errorf("%w: pprof message ends early", ErrFormat)
			}
			body = b[size : size+int(n) : size+int(n)]
			b = b[size+int(n):]
		default:
			return fmt.Errorf("%w: field of type %d in a pprof message", ErrFormat, key&7)
		}
		if err := visit(int(key>>3), v, body); err != nil {
			return err
		}
	}
	return nil
}
