package foreign

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/profile"
)

// maxDepth bounds a stack: no kernel or runtime records deeper ones.
const maxDepth = 2048

// perfHead is the first line of a sample: command (blanks allowed), pid or pid/tid, CPU, time,
// period, event. perf leaves out what -F does not name.
var perfHead = pattern.New(
	`^\s*(\S.*?)\s+(-?\d+)(?:/(-?\d+))?\s+(?:\[(\d+)\]\s+)?(?:\S{1,6}\s+)?(\d+\.\d+):\s+` +
		`(?:(\d+)\s+)?(\S+?):(?:\s+([0-9a-f]+)\s+(.*))?\s*$`)

// perfFrame is one frame: address, symbol with offset, and the file in parentheses.
var perfFrame = pattern.New(`^\s*([0-9a-f]+)\s+(.+?)(?:\+0x([0-9a-f]+))?` +
	`(?:\s+\(([^()]*(?:\([^()]*\))?[^()]*)\))?\s*$`)

// perfSample is one sample until all times are known.
type perfSample struct {
	seen    profile.Seen
	seconds float64
	period  uint64
}

// parsePerf reads the text of perf script. Its samples have times, so that the profile has slices.
func parsePerf(b []byte) (*profile.Profile, error) {
	var samples []perfSample
	var one *perfSample
	event, first, last := "", 0.0, 0.0
	builder := (*profile.Builder)(nil)
	others := 0
	end := func() {
		if one != nil && len(one.seen.Frames) > 0 {
			samples = append(samples, *one)
		}
		one = nil
	}
	frame := func(text string) {
		m := perfFrame.FindStringSubmatch(text)
		if m == nil || one == nil || len(one.seen.Frames) >= maxDepth {
			return
		}
		f := profile.Frame{Name: m[2], Kind: perfKind(m[1], m[4])}
		if m[2] == "[unknown]" {
			f.Name = "[" + lastPart(m[4]) + "]"
			if f.Kind == profile.KernelFrame {
				f.Kind = profile.NamelessFrame
			}
		}
		if f.Kind == profile.KernelFrame {
			f.Module = moduleOf(m[4], m[2])
		}
		if len(one.seen.Frames) == 0 {
			if offset, err := strconv.ParseInt(m[3], 16, 64); err == nil {
				one.seen.Offset = offset
			}
		}
		one.seen.Frames = append(one.seen.Frames, builder.Frame(f))
	}
	for raw := range bytes.Lines(b) {
		line := strings.TrimRight(string(raw), "\r\n")
		if strings.TrimSpace(line) == "" {
			end()
			continue
		}
		if line[0] == '#' {
			continue
		}
		// A frame is indented and has no time.
		if m := perfHead.FindStringSubmatch(line); m != nil {
			end()
			seconds, err := strconv.ParseFloat(m[5], 64)
			if err != nil {
				return nil, fmt.Errorf("%w: time %q", ErrFormat, m[5])
			}
			name := strings.TrimSuffix(m[7], ":")
			if event == "" {
				event = name
				builder = profile.NewBuilder(event, isClock(event))
			}
			if name != event {
				others++
				continue
			}
			if len(samples) == 0 {
				first = seconds
			}
			first, last = min(first, seconds), max(last, seconds)
			period, _ := strconv.ParseUint(m[6], 10, 64) // absent: 0
			one = &perfSample{profile.Seen{Offset: -1, Process: m[1], Count: 1}, seconds, period}
			if m[8] != "" {
				frame(m[8] + " " + m[9])
				end()
			}
			continue
		}
		if one != nil {
			frame(line)
		}
	}
	end()
	if builder == nil {
		return nil, ErrFormat
	}
	w := profile.Window{}
	var periods uint64
	n := slicesOf(last - first)
	for _, s := range samples {
		if n > 1 && last > first {
			s.seen.Slice = min(n-1, int(float64(n)*(s.seconds-first)/(last-first)))
		}
		periods += s.period
		builder.Add(s.seen)
	}
	w.Slices = n
	if len(samples) > 0 && periods > 0 {
		if mean := float64(periods) / float64(len(samples)); isClock(event) {
			w.SampleSeconds = mean * 1e-9
		} else {
			w.EventsPerSample = mean
		}
	}
	p := builder.Finish(w)
	p.Duration = last - first
	if others > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d samples of other events than %s are left out", others, event))
	}
	return p, nil
}

// slicesOf returns how many slices of time a recording of that length has: a quarter of a second
// each, at most 60, and none below two seconds.
func slicesOf(seconds float64) int {
	if seconds < 2 {
		return 1
	}
	return int(min(60, max(8, seconds*4)))
}

// isClock reports whether an event of perf is a timer of the kernel. Modifiers follow a colon.
func isClock(event string) bool {
	name, _, _ := strings.Cut(event, ":")
	return name == "cpu-clock" || name == "task-clock"
}

// perfKind decides by the file of a frame, and by the half of the addresses that the kernel has.
func perfKind(address, file string) profile.Kind {
	switch {
	case strings.HasPrefix(file, "[guest"):
		return profile.GuestFrame
	case strings.HasPrefix(file, "[kernel"), strings.Contains(file, "vmlinux"), strings.HasSuffix(file, ".ko"),
		strings.Contains(file, ".ko."), strings.HasPrefix(file, "bpf_prog_"), strings.HasPrefix(file, "[") &&
			!strings.HasPrefix(file, "[unknown") && !strings.HasPrefix(file, "[v") && !strings.HasPrefix(file, "[heap") &&
			!strings.HasPrefix(file, "[stack"):
		return profile.KernelFrame
	case len(address) == 16 && strings.HasPrefix(address, "ffff"):
		return profile.KernelFrame
	}
	return profile.UserFrame
}

func moduleOf(file, symbol string) string {
	base, ko, _ := strings.Cut(lastPart(file), ".ko")
	switch {
	case strings.HasPrefix(symbol, "bpf_prog_"):
		return "bpf"
	case ko != "" || strings.HasSuffix(file, ".ko"):
		return base
	case strings.HasPrefix(file, "[") && !strings.HasPrefix(file, "[kernel"):
		return strings.Trim(file, "[]")
	}
	return ""
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// foldedLine is a stack from the root to the leaf, and a count, which may have decimals.
var foldedLine = pattern.New(`^(\S.*)\s(\d+(?:\.\d+)?)\s*$`)

// entries are functions through which a kernel is entered: what they call is the kernel's.
var entries = pattern.New(`^(entry_SYSCALL|do_syscall_64|asm_|sysvec_|common_interrupt|ret_from_fork|` +
	`ret_from_intr|secondary_startup_64|start_secondary|cpu_startup_entry|system_call|entry_INT80|page_fault|` +
	`do_IRQ|el0_|el1_|el0t_|el1h_|amd64_syscall|fork_exit|Xfast_syscall|unix` + "`" + `|genunix` + "`" +
	`|handle_softirqs|__softirqentry|x64_sys_call|__x64_sys_)`)

// parseFolded reads folded stacks. With two counts on a line (a difference) the later one counts.
func parseFolded(b []byte) (*profile.Profile, error) {
	builder := profile.NewBuilder("samples", false)
	marked := bytes.Contains(b, []byte("_[k]"))
	bad := 0
	for raw := range bytes.Lines(b) {
		line := strings.TrimRight(string(raw), "\r\n")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		m := foldedLine.FindStringSubmatch(line)
		if m == nil {
			bad++
			continue
		}
		count, err := strconv.ParseFloat(m[2], 64)
		if err != nil || count < 0 || count > 1e15 {
			bad++
			continue
		}
		names := strings.Split(m[1], ";")
		if len(names) > maxDepth {
			names = names[len(names)-maxDepth:]
		}
		frames := make([]int, 0, len(names))
		kernel, process := false, ""
		for i, name := range names {
			plain, isMarked := strings.CutSuffix(name, "_[k]")
			if i == 0 && len(names) > 1 {
				process = plain
			}
			kernel = kernel || entries.MatchString(plain)
			f := profile.Frame{Name: plain, Kind: profile.UserFrame}
			if isMarked || !marked && (kernel || i == len(names)-1 && known(plain)) {
				f.Kind = profile.KernelFrame
			}
			frames = append(frames, builder.Frame(f))
		}
		for i, j := 0, len(frames)-1; i < j; i, j = i+1, j-1 {
			frames[i], frames[j] = frames[j], frames[i]
		}
		builder.Add(profile.Seen{Frames: frames, Offset: -1, Process: process, Count: uint64(count + 0.5)})
	}
	p := builder.Finish(profile.Window{})
	if bad > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d lines are no stack with a count", bad))
	}
	return p, nil
}

// known reports whether a function has a row of its own in the table of stages.
func known(name string) bool { return profile.StageOf(name) != profile.StageOther }
