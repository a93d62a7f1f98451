package nuttcp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// What the protocol calls MB and KB.
const (
	megabyte = 1 << 20
	kilobyte = 1 << 10
)

// figures are what a server tells of a test, or of a part of it.
type figures struct {
	bytes   int64         // of payload, at this end
	elapsed time.Duration // of the data alone, without what it took to arrange for them
	calls   int64         // of the system, to read or to write; UDP: datagrams

	// Of UDP, where the sender says how much it sent: sentBytes is how much that is, 0 where it
	// does not.
	packets, sentBytes int64

	cpu     float64 // seconds of user and system time
	user    float64
	system  float64
	retrans int64 // of a sender; <0: not known
}

func (f figures) megabytes() float64 { return float64(f.bytes) / megabyte }

func (f figures) mbps() float64 { return over(float64(f.bytes)*8/1e6, f.elapsed.Seconds()) }

// over divides, and makes nothing of a division by nothing.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// drops are how many datagrams are missing, and of how many.
func (f figures) drops(packetBytes int) (missing, sent int64) {
	sent = f.sentBytes / int64(packetBytes)
	return max(0, sent-f.packets), sent
}

// The lines below are as 6.1.2 writes them, to the blank: its client passes the lines of intervals
// on to its user, or to a script, and finds the figures of the report by their places in a line.

// intervalLine tells of one interval as the format asks; total is everything since the start.
func intervalLine(p params, part, total figures) string {
	var b strings.Builder
	one := func(f figures, before string) {
		if p.format&formatParse != 0 {
			fmt.Fprintf(&b, "%smegabytes=%.4f %sreal_sec=%.2f %srate_Mbps=%.4f", before, f.megabytes(), before,
				f.elapsed.Seconds(), before, f.mbps())
		} else {
			fmt.Fprintf(&b, "%10.4f MB / %6.2f sec = %9.4f Mbps", f.megabytes(), f.elapsed.Seconds(), f.mbps())
		}
		// Of TCP the program adds "0 retrans" here: its own receiving socket's count, which says
		// nothing of the sender's, so it is left out, as it is itself with several connections.
		if !p.udp || f.sentBytes == 0 {
			return
		}
		missing, sent := f.drops(p.blockBytes)
		loss := over(float64(missing), float64(sent))
		switch {
		case p.format&formatParse != 0:
			fmt.Fprintf(&b, " drop=%d pkt=%d data_loss=%.5f", missing, sent, 100*loss)
		default:
			if p.format&formatNoDrops == 0 {
				fmt.Fprintf(&b, " %5d / %5d ~drop/pkt", missing, sent)
			}
			if p.format&formatNoPercent == 0 {
				fmt.Fprintf(&b, " %5.2f ~%%loss", 100*loss)
			}
		}
	}
	// The interval first and the running total behind it, on one line: that is how both formats of
	// the program have it.
	one(part, "")
	if p.format&formatTotals != 0 {
		if p.format&formatParse != 0 {
			b.WriteString(" ")
			one(total, "total_")
		} else {
			b.WriteString(" Tot: ")
			one(total, "")
		}
	}
	if p.format&formatSent != 0 && p.udp && part.sentBytes > 0 {
		sent, all := float64(part.sentBytes)/megabyte, float64(total.sentBytes)/megabyte
		switch {
		case p.format&formatParse != 0 && p.format&formatTotals != 0:
			fmt.Fprintf(&b, " tx_megabytes=%.4f tx_total_megabytes=%.4f", sent, all)
		case p.format&formatParse != 0:
			fmt.Fprintf(&b, " tx_megabytes=%.4f", sent)
		case p.format&formatTotals != 0:
			fmt.Fprintf(&b, " Trans: %10.4f MB Tot: %10.4f MB", sent, all)
		default:
			fmt.Fprintf(&b, " Trans: %10.4f MB", sent)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// introduction is what a server says of itself at the head of its report: where the client is told
// to be verbose it shows it.
func introduction(p params) string {
	who, kind := "nuttcp-r", "tcp"
	if !p.transmit {
		who = "nuttcp-t"
	}
	if p.udp {
		kind = "udp"
	}
	if p.format&formatParse != 0 {
		return fmt.Sprintf("%s: v%s: socket\n%s: buflen=%d nstream=%d port=%d mode=%s\n", who, version, who,
			p.blockBytes, p.streams, p.port, kind)
	}
	return fmt.Sprintf("%s: v%s: socket\n%s: buflen=%d, nstream=%d, port=%d %s\n", who, version, who, p.blockBytes,
		p.streams, p.port, kind)
}

// report is the end of what a server says, in the lines that the client of 6.1.2 looks for.
func report(p params, f figures) string {
	who := "nuttcp-r"
	if !p.transmit {
		who = "nuttcp-t"
	}
	seconds := f.elapsed.Seconds()
	// KB/sec are of 1024 bytes and Mbps of a million bits, side by side in one line.
	kilobytes := float64(f.bytes) / kilobyte
	perCall, calls := over(seconds*1000, float64(f.calls)), over(float64(f.calls), seconds)
	// What the client shows as %RX or %TX.
	share := int(math.Round(100 * over(f.cpu, seconds)))
	// The last line is as csh(1) tells of a command's time, with minutes and seconds.
	minutes, rest := int(seconds)/60, int(seconds)%60
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, who+": "+format+"\n", args...) }
	if p.format&formatParse != 0 {
		say("megabytes=%.4f real_seconds=%.2f rate_KBps=%.2f rate_Mbps=%.4f", f.megabytes(), seconds,
			over(kilobytes, seconds), f.mbps())
		say("megabytes=%.4f cpu_seconds=%.2f KB_per_cpu_second=%.2f", f.megabytes(), f.cpu, over(kilobytes, f.cpu))
		if !p.transmit && !p.udp && f.retrans >= 0 {
			say("retrans=%d", f.retrans)
		}
		say("io_calls=%d msec_per_call=%.2f calls_per_sec=%.2f", f.calls, perCall, calls)
		say("stats=cpu user=%.1f system=%.1f elapsed=%d:%02d cpu=%d%% memory=0i+0d-0maxrss io=0+0pf swaps=0+0csw",
			f.user, f.system, minutes, rest, share)
		return b.String()
	}
	say("%.4f MB in %.2f real seconds = %.2f KB/sec = %.4f Mbps", f.megabytes(), seconds,
		over(kilobytes, seconds), f.mbps())
	say("%.4f MB in %.2f CPU seconds = %.2f KB/cpu sec", f.megabytes(), f.cpu, over(kilobytes, f.cpu))
	if !p.transmit && !p.udp && f.retrans >= 0 {
		say("retrans = %d", f.retrans)
	}
	say("%d I/O calls, msec/call = %.2f, calls/sec = %.2f", f.calls, perCall, calls)
	// Memory, faults and context switches would be of a process that serves one client; this one
	// serves many, so they say 0.
	say("%.1fuser %.1fsys %d:%02dreal %d%% 0i+0d 0maxrss 0+0pf 0+0csw", f.user, f.system, minutes, rest, share)
	return b.String()
}

// far is what a client reads out of a server's report.
type far struct {
	known   bool
	bytes   int64 // exact to 53
	seconds float64
	cpu     float64
	retrans int64 // <0: not told
	refusal string
}

// read takes one line of a server's report; those that it does not know say nothing that is needed.
func (r *far) read(line string) {
	// "nuttcp-r: …" of a server that receives and "nuttcp-t: …" of one that transmits; lines of
	// intervals have no such front.
	_, text, ok := strings.Cut(line, ": ")
	if !ok || !strings.HasPrefix(line, "nuttcp-") {
		return
	}
	fields := strings.Fields(text)
	// Bounded so that no sum or conversion of what a stranger writes can overflow.
	number := func(i int) float64 {
		if i >= len(fields) {
			return math.NaN()
		}
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || v < 0 || v > 1e15 {
			return math.NaN()
		}
		return v
	}
	switch {
	// "0.1250 MB in 1.05 real seconds = …" and "0.1250 MB in 0.01 CPU seconds = …"
	case len(fields) > 5 && fields[1] == "MB" && fields[2] == "in":
		megabytes, seconds := number(0), number(3)
		if math.IsNaN(megabytes + seconds) {
			return
		}
		if fields[4] == "real" {
			r.known, r.bytes, r.seconds = true, int64(math.Round(megabytes*megabyte)), seconds
		} else if fields[4] == "CPU" {
			r.cpu = seconds
		}
	// "retrans = 3"
	case len(fields) == 3 && fields[0] == "retrans" && fields[1] == "=":
		if v := number(2); !math.IsNaN(v) {
			r.retrans = int64(v)
		}
	// "v6.1.2: Error: …", which comes between the two KO of a refusal, or alone when a test breaks
	case strings.Contains(text, "Error: "):
		_, r.refusal, _ = strings.Cut(text, "Error: ")
		r.refusal = clip(r.refusal)
	}
}
