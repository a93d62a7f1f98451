package iperf2

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// csvBytes sums the payload bytes of the connections in the output of -y C: field 7, in lines with
// the id of a connection in field 5. It skips the sum over all, id -1.
func csvBytes(t *testing.T, out string) (sum int64) {
	t.Helper()
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < 9 || f[5] == "-1" {
			continue
		}
		n, err := strconv.ParseInt(f[7], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		sum += n
	}
	return sum
}

var loggedBytes = regexp.MustCompile(` (\d+) bytes in `)

func logBytes(t *testing.T, lines []string) (sum int64) {
	t.Helper()
	for _, l := range lines {
		m := loggedBytes.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("no bytes in %q", l)
		}
		n, _ := strconv.ParseInt(m[1], 10, 64)
		sum += n
	}
	return sum
}

// realClient runs the program against a server of this package and returns its output and the
// server's log. The program's threads sometimes free the lines of their reports twice (2.1.8, with
// -P), after which it aborts or hangs. Such a run has no result, so it is repeated with another
// server.
func realClient(t *testing.T, args ...string) (string, *traffictest.Log) {
	t.Helper()
	var out string
	var err error
	for range 3 {
		s, said := serve(t, admission.Limits{}, nil)
		out, err = traffictest.Output(t, 30*time.Second, "iperf",
			append([]string{"-c", "127.0.0.1", "-p", fmt.Sprint(s.Addr().Port())}, args...)...)
		if err == nil {
			return out, said
		}
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.Exited() {
			break
		}
		t.Logf("iperf died: %v\n%s", err, out)
	}
	t.Fatalf("iperf %q: %v\n%s", args, err, out)
	return "", nil
}

// realClientUntil is realClient with a longer time instead of "-t 0.3" until the test has what
// measured asks for: a time in which the machine gave one of the ends no CPU has nothing to show.
func realClientUntil(t *testing.T, args []string, measured func(out string, j *traffictest.Log) bool,
) (string, *traffictest.Log) {
	t.Helper()
	at := slices.Index(args, "0.3")
	var said *traffictest.Log
	out := traffictest.Longer(300*time.Millisecond, func(window time.Duration) (out string) {
		if at > 0 {
			args[at] = fmt.Sprint(window.Seconds())
		}
		out, said = realClient(t, args...)
		return out
	}, func(out string) bool { return at < 0 || measured(out, said) })
	return out, said
}

// TestServerWithRealClient compares iperf's results with what the server counted, connection by
// connection.
func TestServerWithRealClient(t *testing.T) {
	testenv.Program(t, "iperf")
	for _, streams := range []int{1, 4} {
		for _, amount := range []string{"-n 1M", "-t 0.3"} {
			for _, way := range []string{"", "-R"} {
				t.Run(strings.TrimSpace(fmt.Sprintf("tcp -P %d %s %s", streams, amount, way)), func(t *testing.T) {
					verb := "received"
					if way == "-R" {
						verb = "sent"
					}
					out, j := realClientUntil(t,
						append([]string{"-y", "C", "-P", fmt.Sprint(streams)}, strings.Fields(amount+" "+way)...),
						func(_ string, j *traffictest.Log) bool { return logBytes(t, j.Await(t, streams, verb)) > 0 })
					ours, theirs := logBytes(t, j.Await(t, streams, verb)), csvBytes(t, out)
					if ours != theirs || ours == 0 {
						t.Errorf("server %s %d bytes, client counted %d:\n%s", verb, ours, theirs, out)
					}
					if amount == "-n 1M" && ours != int64(streams)<<20 {
						t.Errorf("%d bytes", ours)
					}
				})
			}
			t.Run(fmt.Sprintf("udp -P %d %s", streams, amount), func(t *testing.T) {
				// So slow that everything fits into the socket while the server waits for a CPU.
				args := []string{"-u", "-b", fmt.Sprintf("%dm", 4/streams), "-l", "500", "-P", fmt.Sprint(streams)}
				args = append(args, strings.Fields(strings.Replace(amount, "1M", "30K", 1))...)
				out, j := realClient(t, args...)
				lines := j.Await(t, streams, "received")
				if strings.Contains(out, "did not receive ack") {
					t.Errorf("no report reached the client:\n%s", out)
				}
				for _, l := range lines {
					m := regexp.MustCompile(`received (\d+) of (\d+) datagrams, (\d+) bytes`).FindStringSubmatch(l)
					if m == nil || m[1] != m[2] || m[1] == "0" {
						t.Errorf("log: %s", l)
						continue
					}
					// The client prints what the server's report contains.
					if want := "0/" + m[2] + " (0%)"; !strings.Contains(strings.ReplaceAll(out, " 0/ ", " 0/"), want) {
						t.Errorf("client does not show %q:\n%s", want, out)
					}
				}
			})
		}
	}
}

// TestTripTimesWithRealClient compares the report that the program prints with the server's log.
// After a report without the words of --trip-times it prints what its memory had there.
func TestTripTimesWithRealClient(t *testing.T) {
	testenv.Program(t, "iperf")
	for _, length := range []string{"1470", "200"} {
		out, j := realClient(t, "-u", "--trip-times", "-b", "1m", "-t", "0.3", "-l", length)
		line := j.Await(t, 1, "received")[0]
		m := regexp.MustCompile(`received (\d+) of (\d+) datagrams`).FindStringSubmatch(line)
		lost := regexp.MustCompile(` (\d+)/ *(\d+) \([^)]*\) +([0-9.]+)/([0-9.]+)/([0-9.]+)/[0-9.]+ ms`).
			FindStringSubmatch(out)
		if m == nil || lost == nil {
			t.Fatalf("log %s\nprogram:\n%s", line, out)
		}
		received, _ := strconv.Atoi(m[1])
		all, _ := strconv.Atoi(m[2])
		if lost[1] != fmt.Sprint(all-received) || lost[2] != m[2] {
			t.Errorf("the program prints a loss of %s of %s, the log has %s", lost[1], lost[2], line)
		}
		// Both ends have one clock here.
		mean, _ := strconv.ParseFloat(lost[3], 64)
		least, _ := strconv.ParseFloat(lost[4], 64)
		most, _ := strconv.ParseFloat(lost[5], 64)
		if least < 0 || least > mean || mean > most || most > 60_000 {
			t.Errorf("one-way delays of %s ms on average, %s to %s", lost[3], lost[4], lost[5])
		}
	}
}

// TestBothWaysWithRealClient runs -d and -r, for which the server connects back to a port where the
// program listens: the program ends, and counts what the server counted in both directions.
func TestBothWaysWithRealClient(t *testing.T) {
	testenv.Program(t, "iperf")
	for _, c := range []struct {
		args    string
		streams int
		bytes   int64 // each way; 0: a time ends it
	}{{"-d -n 1M", 1, 1 << 20}, {"-r -n 1M", 1, 1 << 20}, {"-r -t 0.3", 1, 0}, {"-d -t 0.3", 1, 0},
		{"-d -n 1M -P 2", 2, 2 << 20}} {
		t.Run(c.args, func(t *testing.T) {
			out, j := realClientUntil(t, append(strings.Fields(c.args), "-y", "C", "-L", fmt.Sprint(testenv.FreePorts(t, 1))),
				func(_ string, j *traffictest.Log) bool {
					return logBytes(t, j.Await(t, c.streams, "received")) > 0 && logBytes(t, j.Await(t, c.streams, "sent")) > 0
				})
			received, sent := logBytes(t, j.Await(t, c.streams, "received")), logBytes(t, j.Await(t, c.streams, "sent"))
			if c.bytes > 0 && (received != c.bytes || sent != c.bytes) || received == 0 || sent == 0 {
				t.Errorf("received %d bytes, sent %d", received, sent)
			}
			if theirs := csvBytes(t, out); theirs != received+sent {
				t.Errorf("the program counts %d bytes, the server %d and %d:\n%s", theirs, received, sent, out)
			}
		})
	}
}

// sentAsLogged compares the datagrams of a line of the server's log with those that the program
// says it sent.
func sentAsLogged(t *testing.T, line, out string) {
	t.Helper()
	m := regexp.MustCompile(`received \d+ of (\d+) datagrams`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("log %s", line)
	}
	// 2.1.8 prints one more than it sends, against its own server too.
	all, _ := strconv.Atoi(m[1])
	if !strings.Contains(out, fmt.Sprintf("Sent %d datagrams", all+1)) {
		t.Errorf("log %s\nprogram:\n%s", line, out)
	}
}

// TestRealClientsEnd runs what the server refuses or serves in another way than TCP and UDP
// upstream: the program ends, and counts what the server counted.
func TestRealClientsEnd(t *testing.T) {
	testenv.Program(t, "iperf")
	t.Run("udp reverse", func(t *testing.T) {
		out, j := realClient(t, "-u", "-R", "-b", "1m", "-t", "1")
		j.Await(t, 1, "turned away: it requests datagrams")
		if !regexp.MustCompile(`16\.0 Bytes .* 0/ *1 `).MatchString(out) {
			t.Errorf("program:\n%s", out)
		}
	})
	// A datagram of less than 216 bytes is shorter than a report and the end of the other half, and
	// one of less than 56 shorter than a report.
	for _, option := range []string{"-d", "-r", "-d -l 100", "-r -l 100", "-r -l 215", "-d -l 20", "-r -l 20",
		"-d -P 2", "-d -P 2 -l 100"} {
		t.Run("udp "+option, func(t *testing.T) {
			streams := 1 + strings.Count(option, "-P 2")
			end := regexp.MustCompile(`32\.0 Bytes .* 0/ *2 `)
			// It waits for the other half as long as it sends. Where it accepted the first stream late, it
			// has counted the first end of the other one there, and needs the next one.
			out, j := realClientUntil(t, append(strings.Fields(option), "-u", "-b", "1m", "-t", "0.3",
				"-L", fmt.Sprint(testenv.FreePorts(t, 1))), func(out string, _ *traffictest.Log) bool {
				return !strings.Contains(out, "expected reverse connect did not occur") &&
					(streams == 1 || len(end.FindAllString(out, -1)) == streams)
			})
			for _, line := range j.Await(t, streams, "received") {
				sentAsLogged(t, line, out)
			}
			if ends := end.FindAllString(out, -1); len(ends) != streams {
				t.Errorf("%d streams end at the client, want %d\nprogram:\n%s", len(ends), streams, out)
			}
			if lines := j.Find("received"); len(lines) != streams {
				t.Errorf("log: %q", lines)
			}
		})
	}
	t.Run("udp full duplex", func(t *testing.T) {
		out, j := realClient(t, "-u", "--full-duplex", "-b", "1m", "-t", "0.3")
		sentAsLogged(t, j.Await(t, 1, "received")[0], out)
	})
	for _, length := range []string{"", "50", "5000"} {
		t.Run("bounceback "+length, func(t *testing.T) {
			args := []string{"--bounceback", "-t", "0.3", "--bounceback-hold", "2"}
			bytes := "100"
			if length != "" {
				args, bytes = append(args, "-l", length), length
			}
			back := []string{"messages of " + bytes + " bytes back"}
			sent := regexp.MustCompile(`sent (\d+) messages`)
			out, j := realClientUntil(t, args, func(_ string, j *traffictest.Log) bool {
				// Of a single round trip the program prints no time.
				m := sent.FindStringSubmatch(j.Await(t, 1, back...)[0])
				return m != nil && m[1] != "0" && m[1] != "1"
			})
			line := j.Await(t, 1, back...)[0]
			n := sent.FindStringSubmatch(line)
			counts := regexp.MustCompile(` (\d+)=([0-9.]+)/([0-9.]+)/`).FindAllStringSubmatch(out, -1)
			if n == nil || len(counts) == 0 {
				t.Fatalf("log %s\nprogram:\n%s", line, out)
			}
			last := counts[len(counts)-1]
			// Each message was held for two milliseconds.
			if least, _ := strconv.ParseFloat(last[3], 64); last[1] != n[1] || least < 2 {
				t.Errorf("%s round trips, %s ms the shortest; log %s", last[1], last[3], line)
			}
		})
	}
}
