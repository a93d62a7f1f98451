package nuttcp

import (
	"fmt"
	"math"
	"net"
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

// parsed parses the key=value output of -fparse; the last value of a key counts.
func parsed(out string) map[string]float64 {
	values := make(map[string]float64)
	for _, m := range regexp.MustCompile(`(\w+)=([0-9.]+)`).FindAllStringSubmatch(out, -1) {
		if v, err := strconv.ParseFloat(m[2], 64); err == nil {
			values[m[1]] = v
		}
	}
	return values
}

// timeOf returns the time that the options ask for; 0: an amount.
func timeOf(args string) time.Duration {
	m := regexp.MustCompile(`-T ([0-9.]+)`).FindStringSubmatch(args)
	if m == nil {
		return 0
	}
	seconds, _ := strconv.ParseFloat(m[1], 64)
	return time.Duration(seconds * float64(time.Second))
}

var loggedBytes = regexp.MustCompile(`(?:received|sent) (\d+) bytes`)

// TestServerWithRealClient compares nuttcp's results with what the server counted.
func TestServerWithRealClient(t *testing.T) {
	testenv.Program(t, "nuttcp")
	for _, c := range []struct{ name, args string }{
		{"tcp", "-n 64"}, {"tcp", "-T 0.3"}, {"tcp", "-T 0.5 -i 0.1"}, {"tcp", "-N 4 -n 63"}, {"tcp", "-N 4 -T 0.3"},
		{"tcp", "-F -n 64"},
		{"tcp down", "-r -n 64"}, {"tcp down", "-r -T 0.3"}, {"tcp down", "-r -N 4 -n 63"},
		{"tcp down", "-r -N 4 -T 0.3"}, {"tcp down", "-r -F -n 64"},
		{"tcp down", "-r -R 20m -T 0.3"}, {"tcp options", "-M 1000 -w 128 -D -c8 -n 16"},
		{"udp", "-u -l 500 -R 4m -n 200"}, {"udp", "-u -l 500 -R 4m -T 0.5 -i 0.1"},
		{"udp down", "-u -r -l 500 -R 4m -T 0.3"}, {"udp down", "-u -r -l 500 -R 4m -n 200"},
	} {
		// Both formats where lines differ: with intervals, of a receiver, of a sender, with
		// datagrams. The UDP client continues for two seconds after its end and occupies a CPU for
		// its pacing, so there are few of those.
		formats := []string{""}
		if strings.Contains(c.args, "-i") || c.args == "-n 64" || c.args == "-r -n 64" {
			formats = []string{"", "-fparse"}
		}
		for _, format := range formats {
			t.Run(strings.TrimSpace(c.name+" "+c.args+" "+format), func(t *testing.T) {
				if strings.HasPrefix(c.name, "udp") {
					t.Parallel() // the clients wait most of the time
				}
				var out string
				var ours float64
				var lines []string // of the server that the client prints; the scheduler decides how many
				// A time in which the machine gave one of the ends no CPU has nothing to show.
				traffictest.Longer(timeOf(c.args), func(window time.Duration) string {
					s, j := serve(t, admission.Limits{}, nil)
					port := testenv.FreePorts(t, 4)
					args := []string{"-P", fmt.Sprint(s.Addr().Port()), "-p", fmt.Sprint(port)}
					args = append(args, strings.Fields(c.args+" "+format)...)
					if i := slices.Index(args, "-T"); i > 0 {
						args[i+1] = fmt.Sprint(window.Seconds())
					}
					out = traffictest.Run(t, "nuttcp", append(args, "127.0.0.1")...)
					line := j.Await(t, 1, " bytes by ")[0]
					if strings.Contains(line, "ended early") {
						t.Error(line)
					}
					m := loggedBytes.FindStringSubmatch(line)
					if m == nil {
						t.Fatalf("no bytes in %q", line)
					}
					ours, _ = strconv.ParseFloat(m[1], 64)
					lines = regexp.MustCompile(
						`(?m)^(megabytes=[0-9.]+ real_sec=|.* MB / +[0-9.]+ sec)`).FindAllString(out, -1)
					return line
				}, func(string) bool {
					return ours > 0 && (!strings.Contains(c.args, "-i 0.1") || len(lines) >= 2) ||
						!strings.Contains(c.args, "-T")
				})
				theirs := math.NaN()
				if format == "-fparse" {
					theirs = parsed(out)["megabytes"]
				} else if all := regexp.MustCompile(`([0-9.]+) MB /`).FindAllStringSubmatch(out, -1); len(all) > 0 {
					theirs, _ = strconv.ParseFloat(all[len(all)-1][1], 64)
				}
				if ours == 0 || !(math.Abs(theirs-ours/megabyte) < 0.00011) {
					t.Errorf("server counted %.0f bytes, %.4f MB; client shows %.4f:\n%s", ours, ours/megabyte,
						theirs, out)
				}
				// Of a server that sends, the client shows what only a sender knows.
				if c.name == "tcp down" && (!strings.Contains(out, "retrans") ||
					format == "" && !strings.Contains(c.args, "-F") && !strings.Contains(out, "msRTT")) {
					t.Errorf("no retransmissions, or no round trip:\n%s", out)
				}
				if n := regexp.MustCompile(`-n (\d+)`).FindStringSubmatch(c.args); n != nil {
					blocks, _ := strconv.Atoi(n[1])
					block := 65536
					if strings.Contains(c.args, "-u") {
						block = 500
					}
					if ours != float64(blocks*block) {
						t.Errorf("%.0f bytes, want %d", ours, blocks*block)
					}
				}
				if strings.Contains(c.args, "-i 0.1") && len(lines) < 2 {
					t.Errorf("%d lines of intervals:\n%s", len(lines), out)
				}
				if strings.Contains(c.args, "-u") && !strings.Contains(out, "0.00 %loss") &&
					parsed(out)["data_loss"] != 0 {
					t.Errorf("loss:\n%s", out)
				}
			})
		}
	}
}

// TestServerReportsItsOwnCPUTime compares the CPU time that the client shows with that of this
// process around the whole test, which the rest of the host does not change.
func TestServerReportsItsOwnCPUTime(t *testing.T) {
	testenv.Program(t, "nuttcp")
	for _, way := range []string{"", "-r"} {
		s, _ := serve(t, admission.Limits{}, nil)
		args := append([]string{"-v", "-P", fmt.Sprint(s.Addr().Port()), "-p", fmt.Sprint(testenv.FreePorts(t, 1))},
			strings.Fields("-n 4096 "+way+" 127.0.0.1")...)
		before := readCPUTimes()
		out := traffictest.Run(t, "nuttcp", args...)
		after := readCPUTimes()
		// Its client's own line begins with nuttcp-t, or with nuttcp-r where the server sends.
		who := map[string]string{"": "nuttcp-r", "-r": "nuttcp-t"}[way]
		m := regexp.MustCompile(`(?s)` + who + `: [0-9.]+ MB in ([0-9.]+) real seconds.*` + who +
			`: [^\n]*real ([0-9]+)% `).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("no CPU time:\n%s", out)
		}
		seconds, _ := strconv.ParseFloat(m[1], 64)
		percent, _ := strconv.ParseFloat(m[2], 64)
		// Printed to a hundredth of a second and to one per cent.
		shown, used := percent/100*seconds, (after.user + after.system - before.user - before.system).Seconds()
		if most := (percent/100 + 0.005) * 0.005; shown <= 0 || shown > used+most+0.005*seconds {
			t.Errorf("%q: the client shows %.3f CPU seconds, this process used %.3f:\n%s", way, shown, used, out)
		}
	}
}

// TestLastBlockCounts asks for a rate at which a block takes half a second. The client's own
// program stops after the time of the block, so that the rate is not above what was asked for,
// however busy the machine is.
func TestLastBlockCounts(t *testing.T) {
	testenv.Program(t, "nuttcp")
	s, _ := serve(t, admission.Limits{}, nil)
	out := traffictest.Run(t, "nuttcp", "-P", fmt.Sprint(s.Addr().Port()), "-p", fmt.Sprint(testenv.FreePorts(t, 4)),
		"-r", "-R1m", "-T0.7", "-fparse", "127.0.0.1")
	if rate := parsed(out)["rate_Mbps"]; rate <= 0 || rate > 1.02 {
		t.Errorf("%g Mb/s of 1: %s", rate, out)
	}
}

// TestSilentClientIsExpected checks that a connection of `nuttcp -F -r`, which brings no bytes, is
// known as silent: the clock of the client runs while a shared port waits for its first bytes.
func TestSilentClientIsExpected(t *testing.T) {
	testenv.Program(t, "nuttcp")
	for args, want := range map[string]bool{"-F -r -n 4": true, "-n 4": false} {
		t.Run(args, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			port := l.Addr().(*net.TCPAddr).Port
			shared := NewArrivals()
			s, j := serve(t, admission.Limits{}, func(s *Server) {
				s.o.Shared = func(p int) *Arrivals {
					if p != port {
						return nil
					}
					return shared
				}
			})
			seen := make(chan [2]bool, 1)
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				waits, silent := shared.Expects(c.(*net.TCPConn))
				seen <- [2]bool{waits, silent}
				shared.TakeConn(c.(*net.TCPConn))
			}()
			all := append([]string{"-P", fmt.Sprint(s.Addr().Port()), "-p", fmt.Sprint(port)}, strings.Fields(args)...)
			traffictest.Run(t, "nuttcp", append(all, "127.0.0.1")...)
			j.Await(t, 1, " bytes by ")
			if got := <-seen; got != [2]bool{true, want} {
				t.Errorf("waits and is silent: %v, want true and %v", got, want)
			}
		})
	}
}
