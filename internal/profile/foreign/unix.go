package foreign

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/profile"
)

// pmcEvent heads the tree of one event of pmcstat -G, pmcLine is one function in it: percent of the
// callee, samples, function, and the image where it changes.
var (
	pmcEvent = pattern.New(`^@ (\S.*?) \[(\d+) samples\]\s*$`)
	pmcLine  = pattern.New(`^( *)\d+\.\d*%  \[(\d+)\](\s+)(\S+)(?: @ (\S+))?\s*$`)
)

// pmcNode is a function on the path from the leaf, and how many of its samples the callers below
// have not claimed.
type pmcNode struct {
	frame int
	left  uint64
	image string
}

// parsePmcstat reads the call graphs of pmcstat -G: each tree begins with the leaf, and callers are
// indented below what they call.
func parsePmcstat(b []byte) (*profile.Profile, error) {
	builder := (*profile.Builder)(nil)
	var path []pmcNode
	others := 0
	skip := false
	event := ""
	// close ends nodes from a depth on: what their callers did not claim ended there.
	closeFrom := func(depth int) {
		for len(path) > depth {
			n := path[len(path)-1]
			if n.left > 0 {
				frames := make([]int, len(path))
				for i, p := range path {
					frames[i] = p.frame
				}
				builder.Add(profile.Seen{Frames: frames, Offset: -1, Count: n.left})
			}
			path = path[:len(path)-1]
		}
	}
	bad := 0
	for raw := range bytes.Lines(b) {
		line := strings.TrimRight(string(raw), "\r\n")
		if m := pmcEvent.FindStringSubmatch(line); m != nil {
			if builder != nil {
				closeFrom(0)
			}
			if builder == nil {
				event = m[1]
				builder = profile.NewBuilder(event, false)
			}
			if skip = m[1] != event; skip {
				others++
			}
			continue
		}
		if strings.TrimSpace(line) == "" || builder == nil || skip {
			continue
		}
		m := pmcLine.FindStringSubmatch(line)
		if m == nil {
			bad++
			continue
		}
		count, err := strconv.ParseUint(m[2], 10, 63)
		depth := len(m[1])
		if err != nil || depth > len(path) && depth > 0 || depth >= maxDepth {
			bad++
			continue
		}
		closeFrom(depth)
		image := m[5]
		if image == "" && depth > 0 {
			image = path[depth-1].image
		}
		kind := profile.UserFrame
		if strings.HasPrefix(image, "/boot/") {
			kind = profile.KernelFrame
		}
		if kind == profile.KernelFrame && strings.HasPrefix(m[4], "0x") {
			kind = profile.NamelessFrame
		}
		if depth > 0 {
			above := &path[depth-1]
			count = min(count, above.left)
			above.left -= count
		}
		path = append(path, pmcNode{builder.Frame(profile.Frame{Name: m[4], Kind: kind}), count, image})
	}
	if builder == nil {
		return nil, ErrFormat
	}
	closeFrom(0)
	p := builder.Finish(profile.Window{})
	if others > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d other events than %s are left out", others, event))
	}
	if bad > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d lines are no function of a call graph", bad))
	}
	return p, nil
}

// dtraceFrame is a frame of DTrace: module, function, offset; dtraceCount ends a stack.
var (
	dtraceFrame = pattern.New("^\\s+([^`\\s]+)`(.+?)(?:\\+0x([0-9a-f]+))?\\s*$")
	dtraceCount = pattern.New(`^\s*(\d+)\s*$`)
)

// library is a file that only programs have: libc.so.1, libsystem_c.dylib, ld-elf.so.1.
var library = pattern.New(`\.(so|dylib)(\.[0-9.]+)?$|\.1$`)

// parseDTrace reads stacks that DTrace aggregated: frames from the leaf on, and a count alone on a
// line. A blank line stands between the kernel's frames and those of a program. DTrace does not say
// which is which: frames beside one of a library are a program's.
func parseDTrace(b []byte) (*profile.Profile, error) {
	builder := profile.NewBuilder("profile", false)
	var frames []int
	var block []profile.Frame
	ofProgram := false
	endBlock := func() {
		for _, f := range block {
			if ofProgram {
				f.Kind = profile.UserFrame
			}
			frames = append(frames, builder.Frame(f))
		}
		block, ofProgram = block[:0], false
	}
	for raw := range bytes.Lines(b) {
		line := strings.TrimRight(string(raw), "\r\n")
		if strings.TrimSpace(line) == "" {
			endBlock()
			continue
		}
		if m := dtraceCount.FindStringSubmatch(line); m != nil {
			endBlock()
			if count, err := strconv.ParseUint(m[1], 10, 63); err == nil {
				builder.Add(profile.Seen{Frames: frames, Offset: -1, Count: count})
			}
			frames = nil
			continue
		}
		m := dtraceFrame.FindStringSubmatch(line)
		if m == nil || len(frames)+len(block) >= maxDepth {
			continue
		}
		f := profile.Frame{Name: m[2], Kind: profile.KernelFrame}
		switch module := m[1]; {
		case library.MatchString(module):
			ofProgram = true
		case strings.HasPrefix(m[2], "0x"):
			f.Kind = profile.NamelessFrame
		case module != "kernel" && module != "unix" && module != "genunix":
			f.Module = module
		}
		block = append(block, f)
	}
	return builder.Finish(profile.Window{}), nil
}
