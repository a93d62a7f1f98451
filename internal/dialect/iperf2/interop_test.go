package iperf2

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
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
		out, err = traffictest.Output(t, 10*time.Second, "iperf",
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

// TestServerWithRealClient compares iperf's results with what the server counted, connection by
// connection.
func TestServerWithRealClient(t *testing.T) {
	testenv.Program(t, "iperf")
	for _, streams := range []int{1, 4} {
		for _, amount := range []string{"-n 1M", "-t 0.3"} {
			for _, way := range []string{"", "-R"} {
				t.Run(strings.TrimSpace(fmt.Sprintf("tcp -P %d %s %s", streams, amount, way)), func(t *testing.T) {
					out, j := realClient(t,
						append([]string{"-y", "C", "-P", fmt.Sprint(streams)}, strings.Fields(amount+" "+way)...)...)
					verb := "received"
					if way == "-R" {
						verb = "sent"
					}
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
