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

// maxBuffer caps what a candidate may ask for: beyond 256 MiB per socket a mistake costs the host
// its memory.
//
// That is about four times what a path of 10 Gb/s and 50 ms has in flight.
const maxBuffer = 256 << 20

// unknownHeadroom is how many times the present rate a path is assumed to carry when no link speed
// is known, and unknownRate what it is assumed to carry at least: a flow that a tiny window holds
// says little about its path, and a gigabit is what today's hosts have in common.
const (
	unknownHeadroom = 8
	unknownRate     = 1e9
)

// target is the bandwidth-delay product worth aiming for, bytes: the slowest known link times the
// empty round trip; with no link known, eight times the present rate or a gigabit, whichever is
// more. why says which.
func (f *Flow) Target() (size float64, why string) {
	if link, _, ok := f.SlowestLink(); ok {
		// A fault that costs little leaves the present rate near the link's: never aim below what
		// flows already.
		speed := max(link.SpeedBitsPerSec, f.RateBitsPerSec)
		return speed / 8 * f.Base(), fmt.Sprintf("%s of %s for a round trip of %s", Rate(link.SpeedBitsPerSec),
			link.Name, Seconds(f.Base()))
	}
	if unknownHeadroom*f.RateBitsPerSec < unknownRate {
		return unknownRate / 8 * f.Base(), fmt.Sprintf("%s for a round trip of %s, as no link speed is known",
			Rate(unknownRate), Seconds(f.Base()))
	}
	return unknownHeadroom * f.RateBitsPerSec / 8 * f.Base(),
		fmt.Sprintf("%d times the present rate for a round trip of %s, as no link speed is known", unknownHeadroom,
			Seconds(f.Base()))
}

// slowestLink finds the slower of the real links that carry the flow. The speed of a virtual
// interface is a number that somebody typed, that of an imitated card bounds nothing, so neither
// counts.
func (f *Flow) SlowestLink() (card *host.Interface, at End, ok bool) {
	for _, e := range []End{f.Sender, f.Receiver} {
		c := e.Card
		if c == nil || c.SpeedBitsPerSec <= 0 || e.Host == nil || ceiling.NominalSpeed(e.Host, c) {
			continue
		}
		if !ok || c.SpeedBitsPerSec < card.SpeedBitsPerSec {
			card, at, ok = c, e, true
		}
	}
	return card, at, ok
}

// bufferLevels gives values for a "min default max" setting whose maximum makes 1, 2 and 4 times
// the target usable, from small to large. usable is the part of the buffer that holds payload.
// Levels that are not above the present value are left out.
//
// Once is what arithmetic asks for; twice and four times are there because the usable part is an
// estimate (newer kernels learn it from each flow) and the round trip grows under load. The
// experiment takes the smallest level that is as good as the best.
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

// bufferSizes is bufferLevels for the one number that changes.
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

// roundUp makes a size a whole number of MiB, or of 64 KiB below one MiB, so that people can read
// it.
//
// The rounding is upwards, since a buffer a little under the product of rate and round trip holds
// the flow.
func RoundUp(size float64) int64 {
	step := 64.0 * 1024
	if size > 1<<20 {
		step = 1 << 20
	}
	return int64(math.Ceil(size/step) * step)
}

// usableWindow is the part of a receive buffer that is offered as window. Since Linux 6.6 the
// kernel learns it from how full its packets are and starts at one half; before, tcp_adv_win_scale
// fixed it, one half by default.
//
// A positive scale s takes 1/2^s away for the kernel's own accounting, a value of 0 or less leaves
// 2^s of it (ip-sysctl.rst, tcp_adv_win_scale; obsolete since 6.6, where the file is still there).
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

// usableSendBuffer is the part of a send buffer that holds payload in flight in the worst case: the
// kernel counts the memory of its packet descriptors and of the pages behind them, up to as much
// again as the payload.
const UsableSendBuffer = 0.5

// atLeast compares a kernel release such as "6.12.4-amd64".
func KernelAtLeast(release string, major, minor int) bool {
	var a, b int
	if n, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil || n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}
