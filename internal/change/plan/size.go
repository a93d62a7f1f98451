package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
)

// largest is the largest buffer that any of the systems takes, in bytes: 1 GiB is also the largest
// window that TCP can announce (RFC 7323).
const largest = 1 << 30

// perPath returns the data that is under way on the path at the rate of the link.
func (s *Situation) perPath() unit.Bytes {
	bytes := float64(s.Link) * s.RoundTrip.Seconds() / 8
	return unit.Bytes(math.Min(math.Ceil(bytes), largest))
}

// sizes are the buffers of a plan.
type sizes struct {
	need   unit.Bytes // one connection needs this at the rate of the link
	factor unit.Bytes // how many bytes of buffer one byte under way takes
	buffer unit.Bytes // and gets this
	memory Memory
	why    string // how need follows
}

// share is the part of memory that buffers of connections may take together, as a divisor, with its
// source. FreeBSD before 10 sizes clusters by kern.maxusers, 25600 at most, and not by memory.
func share(s System) (divisor float64, source string) {
	switch {
	case s.OS == advice.Linux:
		return 32.0 / 3, "3/32 of memory, the kernel's own limit for TCP (net.ipv4.tcp_mem)"
	case s.OS == advice.FreeBSD && s.major() >= 10:
		return 8, "1/8 of memory, what the kernel gives to clusters of 2 KiB (kern.ipc.nmbclusters)"
	}
	return 8, "1/8 of memory"
}

// size computes the buffer of one connection, and lowers it to what memory allows.
//
// Linux counts the memory of a packet and not its payload, and offers half of a buffer as window;
// FreeBSD needs room for the round trip in which a loss is repaired. Both grow a buffer only for
// connections that use it. Solaris and old Windows give each connection the whole size.
func (s *Situation) size() sizes {
	path := s.perPath()
	z := sizes{factor: 1}
	formula := fmt.Sprintf("link × round trip = %s × %s / 8 = %s", s.Link,
		unit.FormatSeconds(s.RoundTrip.Seconds()), path)
	switch s.System.OS {
	case advice.Linux:
		z.factor, formula = 2, formula+"; × 2, because half of a buffer is the window"
	case advice.FreeBSD:
		if s.System.major() >= 7 {
			z.factor, formula = 2, formula+"; × 2, for the round trip that repairs a loss"
		}
	}
	z.need = min(rounded(path*z.factor), largest)
	z.why, z.buffer = formula, z.need
	n := s.Connections
	if n == 0 {
		n = s.Role.connections()
	}
	divisor, source := share(s.System)
	budget := unit.Bytes(float64(s.Memory) / divisor)
	if unit.Bytes(n) > 0 && z.buffer > budget/unit.Bytes(n) {
		z.buffer = max(budget/unit.Bytes(n)/pageSize*pageSize, pageSize)
		z.memory.Lowered = true
	}
	z.memory.HostBytes, z.memory.BudgetBytes, z.memory.BufferBytes, z.memory.Connections = s.Memory, budget, z.buffer, n
	z.memory.TogetherBytes = z.buffer * unit.Bytes(n)
	z.memory.Formula = fmt.Sprintf("%d connections × %s = %s; they may take %s: %s", n, z.buffer,
		z.memory.TogetherBytes, budget, source)
	return z
}

const pageSize = 4096

// rounded rounds a size up to a multiple of 64 KiB; one below that to a page.
func rounded(b unit.Bytes) unit.Bytes {
	step := unit.Bytes(64 << 10)
	if b < step {
		step = pageSize
	}
	return (b + step - 1) / step * step
}

// carries returns what a connection carries with a window of that size.
func carries(window unit.Bytes, rtt time.Duration) unit.BitRate {
	if rtt <= 0 {
		return 0
	}
	return unit.BitRate(float64(window) * 8 / rtt.Seconds())
}
