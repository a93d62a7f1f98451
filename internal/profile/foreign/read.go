package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/linerate/linerate/internal/profile"
)

// Format is what a file is.
type Format string

// The formats that Read knows.
const (
	PerfScript Format = "perf script"
	Folded     Format = "folded stacks"
	Pmcstat    Format = "pmcstat -G"
	DTrace     Format = "DTrace stacks"
	Pprof      Format = "pprof"
)

// ErrFormat reports a file that is in none of the formats, or is damaged.
var ErrFormat = errors.New("not a profile of perf script, folded stacks, pmcstat -G, DTrace or pprof")

// MaxBytes bounds what Read takes into memory, unpacked.
const MaxBytes = 512 << 20

// Read reads a profile. Source is the name that the profile keeps. The error is ErrFormat where no
// format fits.
func Read(r io.Reader, source string) (*profile.Profile, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", source, err)
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("read profile %s: larger than %d bytes", source, MaxBytes)
	}
	if bytes.HasPrefix(b, []byte("PERFILE2")) {
		return nil, fmt.Errorf("read profile %s: a file of perf record holds no names; give the output of perf script: %w",
			source, ErrFormat)
	}
	p, format, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", source, err)
	}
	if p.Samples == 0 {
		return nil, fmt.Errorf("read profile %s: no sample in it: %w", source, ErrFormat)
	}
	p.Source, p.Format = source, string(format)
	return p, nil
}

func parse(b []byte) (*profile.Profile, Format, error) {
	if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		p, err := parsePprof(b)
		return p, Pprof, err
	}
	format := sniff(b)
	var p *profile.Profile
	var err error
	switch format {
	case PerfScript:
		p, err = parsePerf(b)
	case Pmcstat:
		p, err = parsePmcstat(b)
	case DTrace:
		p, err = parseDTrace(b)
	case Folded:
		p, err = parseFolded(b)
	default:
		return nil, "", ErrFormat
	}
	return p, format, err
}

// sniff decides by the first lines that have a form of their own.
func sniff(b []byte) Format {
	const look = 200
	n := 0
	for line := range bytes.Lines(b) {
		line = bytes.TrimRight(line, "\r\n")
		if n++; n > look {
			break
		}
		switch {
		case len(bytes.TrimSpace(line)) == 0 || line[0] == '#':
		case pmcEvent.Match(line):
			return Pmcstat
		case perfHead.Match(line):
			return PerfScript
		case dtraceFrame.Match(line):
			return DTrace
		case foldedLine.Match(line) && bytes.ContainsRune(line, ';'):
			return Folded
		}
	}
	if foldedLine.Match(bytes.TrimSpace(b)) {
		return Folded
	}
	return ""
}
