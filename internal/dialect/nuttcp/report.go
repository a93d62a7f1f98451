package nuttcp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The protocol's MB and KB.
const (
	megabyte = 1 << 20
	kilobyte = 1 << 10
)

// figures are what a server reports about a test, or about a part of it.
type figures struct {
	bytes   int64         // of payload, at this end
	elapsed time.Duration // of the data alone, without the setup
	calls   int64         // system calls that read or write; UDP: datagrams

	// UDP only: sentBytes is how much the sender announced to have sent; 0 if it does not.
	packets, sentBytes int64

	cpu     float64 // seconds of user and system time
	user    float64
	system  float64
	retrans int64 // of a sender; <0: unknown
}

func (f figures) megabytes() float64 { return float64(f.bytes) / megabyte }

func (f figures) mbps() float64 { return over(float64(f.bytes)*8/1e6, f.elapsed.Seconds()) }

// over divides; a division by zero returns 0.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// drops returns how many datagrams are missing, and of how many.
func (f figures) drops(packetBytes int) (missing, sent int64) {
	sent = f.sentBytes / int64(packetBytes)
	return max(0, sent-f.packets), sent
}

// The lines below match those of 6.1.2 to the blank: its client passes the lines of intervals on to
// its user, or to a script, and finds the figures of the report by their position in a line.

// intervalLine returns the line of one interval in the requested format; total covers everything
// since the start.
func intervalLine(p params, part, total figures) string {
	var b strings.Builder
	one := func(f figures, before string) {
		if p.format&formatParse != 0 {
			fmt.Fprintf(&b, "%smegabytes=%.4f %sreal_sec=%.2f %srate_Mbps=%.4f", before, f.megabytes(), before,
				f.elapsed.Seconds(), before, f.mbps())
		} else {
			fmt.Fprintf(&b, "%10.4f MB / %6.2f sec = %9.4f Mbps", f.megabytes(), f.elapsed.Seconds(), f.mbps())
		}
		// For TCP the program adds "0 retrans" here: the count of its own receiving socket, which
		// is unrelated to the sender's. This package omits it, as the program does with several
		// connections.
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
	// The interval and then the running total, on one line, as in both formats of the program.
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

// speaker returns what adds a line to a server's report, with the name of its end.
func speaker(p params, b *strings.Builder) (say func(format string, args ...any)) {
	who := "nuttcp-r: "
	if !p.transmit {
		who = "nuttcp-t: "
	}
	return func(format string, args ...any) { fmt.Fprintf(b, who+format+"\n", args...) }
}

// introduction returns the head of a server's report, which a verbose client shows. Any client
// reads the round trip in it, and shows it as msRTT.
func introduction(p params, to path) string {
	kind := "tcp"
	if p.udp {
		kind = "udp"
	}
	var b strings.Builder
	say := speaker(p, &b)
	say("v%s: socket", version)
	if p.format&formatParse != 0 {
		say("buflen=%d nstream=%d port=%d mode=%s", p.blockBytes, p.streams, p.port, kind)
		if to.to.IsValid() {
			say("connect=%s mss=%d rtt_ms=%.3f", to.to, to.mssBytes, to.rtt.Seconds()*1e3)
		}
		return b.String()
	}
	say("buflen=%d, nstream=%d, port=%d %s", p.blockBytes, p.streams, p.port, kind)
	if to.to.IsValid() {
		say("connect to %s with mss=%d, RTT=%.3f ms", to.to, to.mssBytes, to.rtt.Seconds()*1e3)
	}
	return b.String()
}

// report returns the end of a server's report, in the lines that the client of 6.1.2 parses.
func report(p params, f figures) string {
	seconds := f.elapsed.Seconds()
	// KB/sec are of 1024 bytes and Mbps of a million bits, side by side in one line.
	kilobytes := float64(f.bytes) / kilobyte
	perCall, calls := over(seconds*1000, float64(f.calls)), over(float64(f.calls), seconds)
	// The client shows it as %RX or %TX.
	share := int(math.Round(100 * over(f.cpu, seconds)))
	// The last line has the form of csh(1) for a command's time, with minutes and seconds.
	minutes, rest := int(seconds)/60, int(seconds)%60
	var b strings.Builder
	say := speaker(p, &b)
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
	// Memory, faults and context switches would be those of a process that serves one client. This
	// server serves many, so they are 0.
	say("%.1fuser %.1fsys %d:%02dreal %d%% 0i+0d 0maxrss 0+0pf 0+0csw", f.user, f.system, minutes, rest, share)
	return b.String()
}

// far is what a client reads from a server's report.
type far struct {
	known   bool
	bytes   int64 // exact to 53
	seconds float64
	cpu     float64
	retrans int64 // <0: unknown
	refusal string
}

// read parses one line of a server's report, and ignores lines that it does not know.
func (r *far) read(line string) {
	// "nuttcp-r: …" of a receiving server and "nuttcp-t: …" of a sending one; lines of intervals
	// have no such prefix.
	_, text, ok := strings.Cut(line, ": ")
	if !ok || !strings.HasPrefix(line, "nuttcp-") {
		return
	}
	fields := strings.Fields(text)
	// Bounded so that no sum or conversion of a stranger's number can overflow.
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
	// "v6.1.2: Error: …", between the two KO of a refusal, or alone when a test breaks off
	case strings.Contains(text, "Error: "):
		_, r.refusal, _ = strings.Cut(text, "Error: ")
		r.refusal = clip(r.refusal)
	}
}
