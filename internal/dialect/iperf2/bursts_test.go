package iperf2

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestTripTimesDown: the program shows the latency of each burst that it gets, and counts the bytes
// that the server counts, with every kind of end and of length.
func TestTripTimesDown(t *testing.T) {
	testenv.Program(t, "iperf")
	const settings = 80 // counted by both ends
	// Bytes, rate, latency as average/least/most/deviation, (bursts/mean bytes of one).
	latency := regexp.MustCompile(`\n\[ \*?1\] .* (\d+) Bytes .*/sec +` +
		`\d+\.\d+/\d+\.\d+/\d+\.\d+/\d+\.\d+ ms \((\d+)/\d+\)`)
	for name, test := range map[string]struct {
		way, args string
		bytes     int64 // 0: any
		bursts    int64 // 0: at least one
	}{
		"an amount":          {"-R", "-n 1M -l 16K", 1 << 20, 64},
		"a rest":             {"-R", "-n 1040000 -l 16K", 1040000, 64},
		"a rest for no head": {"-R", "-n 1048616 -l 16K", 1048616, 64},
		"a time":             {"-R", "-t 0.3 -b 8m -l 4K", 0, 0},
		"no length":          {"-R", "-n 1M", 1 << 20, 8},
		"both ways":          {"--full-duplex", "-t 0.3 -b 8m -l 4K", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			out, said := realClient(t, append(strings.Fields(test.args), "-e", "--trip-times", "-f", "B", test.way)...)
			ours := logBytes(t, said.Await(t, 1, "sent"))
			m := latency.FindStringSubmatch(out)
			if m == nil {
				t.Fatalf("no latency:\n%s", out)
			}
			theirs, _ := strconv.ParseInt(m[1], 10, 64)
			bursts, _ := strconv.ParseInt(m[2], 10, 64)
			if theirs != ours || test.bytes != 0 && ours != test.bytes+settings {
				t.Errorf("%d bytes sent, %d shown, want %d and %d:\n%s", ours, theirs, test.bytes, settings, out)
			}
			if bursts == 0 || test.bursts != 0 && bursts != test.bursts {
				t.Errorf("%d bursts, want %d:\n%s", bursts, test.bursts, out)
			}
		})
	}
}
