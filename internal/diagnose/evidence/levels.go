package evidence

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
)

// maxBuffer caps the socket buffer of a candidate in bytes. Beyond 256 MiB per socket a mistake
// costs the host its memory; that is about four times what a path of 10 Gb/s and 50 ms has in
// flight.
const maxBuffer = 256 << 20

// Assumptions about a path with no known link speed: it carries unknownHeadroom times the present
// rate, and unknownRate at least. A flow limited by a tiny window says little about its path, and a
// gigabit is what today's hosts have in common.
const (
	unknownHeadroom = 8
	unknownRate     = 1e9
)

// hostsTurn is the shortest round trip that a window must cover, in seconds: on a shorter path the
// hosts' own turns take most of the time, and depend on what else they do.
const hostsTurn = 0.001

// Target returns the bandwidth-delay product to aim for, in bytes, and how it was derived: the
// slowest known link times the empty round trip, of at least hostsTurn. If no link speed is known,
// it is eight times the present rate or a gigabit, whichever is more.
func (f *Flow) Target() (size float64, why string) {
	rtt := max(f.Base(), hostsTurn)
	if link, _, ok := f.SlowestLink(); ok {
		// A small fault leaves the present rate near the link's: never aim below the present rate.
		speed := max(link.SpeedBitsPerSec, f.RateBitsPerSec)
		return speed / 8 * rtt, fmt.Sprintf("%s of %s for a round trip of %s", Rate(link.SpeedBitsPerSec),
			link.Name, Seconds(rtt))
	}
	if unknownHeadroom*f.RateBitsPerSec < unknownRate {
		return unknownRate / 8 * rtt, fmt.Sprintf("%s for a round trip of %s, because no link speed is known",
			Rate(unknownRate), Seconds(rtt))
	}
	return unknownHeadroom * f.RateBitsPerSec / 8 * rtt,
		fmt.Sprintf("%d times the present rate for a round trip of %s, because no link speed is known", unknownHeadroom,
			Seconds(rtt))
}

// SlowestLink returns the slower of the physical links at the two ends, and its end. It skips
// virtual interfaces, whose speed is a configured number, and emulated NICs, whose speed bounds
// nothing. It also skips a link that the flow outran: another interface carried it, or the speed is
// no fact.
func (f *Flow) SlowestLink() (card *host.Interface, at End, ok bool) {
	for _, e := range []End{f.Sender, f.Receiver} {
		c := e.Card
		if c == nil || c.SpeedBitsPerSec <= 0 || e.Host == nil || ceiling.NominalSpeed(e.Host, c) ||
			f.RateBitsPerSec > c.SpeedBitsPerSec {
			continue
		}
		if !ok || c.SpeedBitsPerSec < card.SpeedBitsPerSec {
			card, at, ok = c, e, true
		}
	}
	return card, at, ok
}

// BufferLevels returns values for a "min default max" setting, from small to large, whose maximum
// makes 1, 2 and 4 times the target usable. usable is the part of the buffer that holds payload. It
// leaves out levels that do not exceed the present value.
//
// Arithmetic asks for 1; 2 and 4 are there because the usable part is an estimate (newer kernels
// learn it from each flow) and the round trip grows under load. The experiment takes the smallest
// level that is as good as the best.
func BufferLevels(present string, target, usable float64) []knob.Value {
	fields := strings.Fields(present)
	if len(fields) != 3 {
		return nil
	}
	var levels []knob.Value
	for _, size := range BufferSizes(fields[2], target, usable) {
		levels = append(levels, knob.Value(fields[0]+" "+fields[1]+" "+strconv.FormatInt(size, 10)))
	}
	return levels
}

// BufferSizes is [BufferLevels] for the one number that changes.
func BufferSizes(present string, target, usable float64) []int64 {
	now, err := strconv.ParseInt(present, 10, 64)
	if err != nil || target <= 0 || usable <= 0 {
		return nil
	}
	var sizes []int64
	for _, times := range []float64{1, 2, 4} {
		size := min(RoundUp(times*target/usable), maxBuffer)
		// A step of less than a quarter is not worth an experiment.
		if size > now+now/4 && !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// RoundUp rounds a size up to whole MiB, or to 64 KiB below one MiB, so that it is readable. It
// never rounds down, because a buffer slightly below rate times round trip limits the flow.
func RoundUp(size float64) int64 {
	step := 64.0 * 1024
	if size > 1<<20 {
		step = 1 << 20
	}
	return int64(math.Ceil(size/step) * step)
}

// UsableWindow returns the part of a receive buffer that the kernel advertises as window. Since
// Linux 6.6 the kernel learns it from how full its packets are, starting at one half. Before,
// tcp_adv_win_scale fixed it, by default at one half.
//
// A positive scale s reserves 1/2^s for the kernel's own accounting; a value of 0 or less leaves
// 2^s as window (ip-sysctl.rst, tcp_adv_win_scale; obsolete since 6.6, where the file still
// exists).
func UsableWindow(e End) float64 {
	scale, ok := e.Number(TCPAdvWinScale, 0)
	if !ok || e.Host == nil || KernelAtLeast(e.Host.Kernel, 6, 6) {
		return 0.5
	}
	if scale > 0 {
		return 1 - math.Pow(2, -scale)
	}
	return math.Pow(2, scale)
}

// UsableSendBuffer is the part of a send buffer that holds payload in flight in the worst case. The
// kernel also counts the memory of its packet descriptors and of the pages behind them, up to the
// size of the payload.
const UsableSendBuffer = 0.5

// KernelAtLeast reports whether a kernel release such as "6.12.4-amd64" is at least major.minor. A
// release that it cannot parse is not.
func KernelAtLeast(release string, major, minor int) bool {
	var a, b int
	if n, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil || n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}
