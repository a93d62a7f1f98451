package iperf2

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// csvBytes sums the payload bytes of the connections in the output of -y C: field 7, in lines with the id of a connection in field 5.
// The sum over all, id -1, is left out.
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

// TestServerWithRealClient compares what iperf says of its tests, connection by connection, with what the server counted.
func TestServerWithRealClient(t *testing.T) {
	program(t, "iperf")
	for _, streams := range []int{1, 4} {
		for _, amount := range []string{"-n 1M", "-t 0.3"} {
			for _, way := range []string{"", "-R"} {
				t.Run(strings.TrimSpace(fmt.Sprintf("tcp -P %d %s %s", streams, amount, way)), func(t *testing.T) {
					s, j := serve(t, admission.Limits{}, nil)
					args := []string{"-c", "127.0.0.1", "-p", fmt.Sprint(s.Addr().Port()), "-y", "C", "-P", fmt.Sprint(streams)}
					args = append(args, strings.Fields(amount+" "+way)...)
					out := run(t, "iperf", args...)
					verb := "received"
					if way == "-R" {
						verb = "sent"
					}
					ours, theirs := logBytes(t, j.await(t, streams, verb)), csvBytes(t, out)
					if ours != theirs || ours == 0 {
						t.Errorf("server %s %d bytes, client counted %d:\n%s", verb, ours, theirs, out)
					}
					if amount == "-n 1M" && ours != int64(streams)<<20 {
						t.Errorf("%d bytes", ours)
					}
				})
			}
			t.Run(fmt.Sprintf("udp -P %d %s", streams, amount), func(t *testing.T) {
				s, j := serve(t, admission.Limits{}, nil)
				// So slow that all of it fits into the socket while the server waits for a processor.
				args := []string{"-u", "-c", "127.0.0.1", "-p", fmt.Sprint(s.Addr().Port()), "-b", fmt.Sprintf("%dm", 4/streams), "-l", "500", "-P", fmt.Sprint(streams)}
				args = append(args, strings.Fields(strings.Replace(amount, "1M", "30K", 1))...)
				out := run(t, "iperf", args...)
				lines := j.await(t, streams, "received")
				if strings.Contains(out, "did not receive ack") {
					t.Errorf("no report reached the client:\n%s", out)
				}
				for _, l := range lines {
					m := regexp.MustCompile(`received (\d+) of (\d+) datagrams, (\d+) bytes`).FindStringSubmatch(l)
					if m == nil || m[1] != m[2] || m[1] == "0" {
						t.Errorf("log: %s", l)
						continue
					}
					// The client repeats what our report says.
					if want := "0/" + m[2] + " (0%)"; !strings.Contains(strings.ReplaceAll(out, " 0/ ", " 0/"), want) {
						t.Errorf("client does not show %q:\n%s", want, out)
					}
				}
			})
		}
	}
}
