package iperf3

import (
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// maxOutputLines bounds the output kept for clients that request the server's output: one hour.
const maxOutputLines = 3600

// output is the server's log of a test, in lines similar to those of the program.
type output struct {
	lines []string
	from  time.Duration // end of the last line, since the start of the workers
	sum   [2]int64      // bytes received and sent until from
}

// line adds what was moved since the last line.
func (o *output) line(l *load, now time.Duration) {
	var sum [2]int64
	for _, f := range l.flows {
		if f.sends {
			sum[1] += f.worker.Bytes.Load()
		} else {
			sum[0] += f.worker.Bytes.Load()
		}
	}
	seconds := (now - o.from).Seconds()
	// Two lines may be due at one moment: the end of the omitted seconds and a whole second.
	if seconds <= 0 || !l.p.ServerOutput || len(o.lines) >= maxOutputLines {
		return
	}
	omitted := ""
	if l.p.Omit > 0 && now <= l.marked {
		omitted = "  (omitted)"
	}
	for i, role := range []string{"received", "sent"} {
		moved := sum[i] - o.sum[i]
		// Only directions that the test has: the other one would be all zeros.
		if i == 0 && l.p.Reverse && !l.p.Bidir || i == 1 && !l.p.Reverse && !l.p.Bidir {
			continue
		}
		// All streams in one line, under the program's name for sums, so that parsers of its output
		// find the rate.
		o.lines = append(o.lines, fmt.Sprintf("[SUM] %6.2f-%-6.2f sec  %10s  %10s  %s%s\n",
			o.from.Seconds(), now.Seconds(), unit.Bytes(moved), unit.BitRate(float64(moved)*8/seconds), role, omitted))
	}
	o.from, o.sum = now, sum
}

// finish returns the whole text.
func (o *output) finish(t *session, own, far results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "linerate, answering iperf3 for %s\n", t.from)
	for _, line := range o.lines {
		b.WriteString(line)
	}
	fmt.Fprintf(&b, "%s\n", summary(t.p, own, far, t.load.ways()))
	return b.String()
}

// ways are how this end moves the data of TCP streams, where that is not the way of the program: it
// costs less, so that the figures cannot be compared without knowing it.
type ways struct{ sending, receiving string }

// ways reads them from the workers, which have changed to copying where nothing else works.
func (l *load) ways() (w ways) {
	for _, f := range l.flows {
		switch {
		case f.worker.Conn == nil:
		case f.sends && f.worker.Method != string(engine.SendCopy):
			w.sending = fmt.Sprintf(", without copying (%s)", f.worker.Method)
		case !f.sends && f.worker.Method != string(engine.ReceiveCopy):
			w.receiving = fmt.Sprintf(", without copying (%s)", f.worker.Method)
		}
	}
	return w
}

// summary describes a test of this server and its result in one sentence.
func summary(p params, own, far results, how ways) string {
	var b strings.Builder
	kind := "tcp"
	if p.UDP {
		kind = "udp"
	}
	fmt.Fprintf(&b, "%s, %d stream", kind, p.Streams)
	if p.Streams > 1 {
		b.WriteString("s")
	}
	if p.ClientVersion != "" {
		fmt.Fprintf(&b, ", client %q", p.ClientVersion)
	}
	for _, received := range []bool{true, false} {
		var bytes, packets, lost, retransmits int64
		var seconds float64
		n := 0
		for i, s := range own.Streams {
			if p.clientSends(i) != received {
				continue
			}
			n++
			bytes += s.Bytes
			seconds = max(seconds, s.EndSeconds)
			retransmits += max(s.Retransmits, 0)
			if !received {
				// Only the client knows what arrived of the data that this end sent.
				s = far.Streams[i]
			}
			packets += s.Packets - s.OmittedPackets
			lost += s.Errors - s.OmittedErrors
		}
		if n == 0 {
			continue
		}
		verb, way := "sent", how.sending
		if received {
			verb, way = "received", how.receiving
		}
		fmt.Fprintf(&b, "; %s %v in %s", verb, unit.Bytes(bytes), unit.FormatSeconds(seconds))
		if seconds > 0 {
			fmt.Fprintf(&b, ", %v", unit.BitRate(float64(bytes)*8/seconds))
		}
		b.WriteString(way)
		switch {
		case p.UDP && packets > 0:
			fmt.Fprintf(&b, ", %d of %d packets lost (%s)", lost, packets,
				unit.FormatPercent(float64(lost)/float64(packets)))
		case !p.UDP && !received && own.HasRetransmits == 1:
			fmt.Fprintf(&b, ", %d retransmits", retransmits)
		}
	}
	return b.String()
}

// sample reads the host's counters; nil if they cannot be read, and then the log has no drops.
func (t *session) sample() *host.Counters {
	if t.server.options.Sample == nil {
		return nil
	}
	c, err := t.server.options.Sample()
	if err != nil {
		return nil
	}
	return c
}

// drops describes what this host dropped during the test, over all its traffic.
func (t *session) drops() string {
	after := t.sample()
	if t.before == nil || after == nil {
		return ""
	}
	var b strings.Builder
	counted := host.Sub(t.before, after)
	for i, d := range drops.Find(counted.Values, counted.Drivers) {
		if i == 3 {
			break // the worst ones are enough for one line
		}
		fmt.Fprintf(&b, "; this host dropped %d packets (%s)", d.Total, d.Place)
	}
	return b.String()
}
