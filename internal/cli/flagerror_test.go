package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestMistypedFlags checks that a mistake in a flag gives status 2, in words of this program, and
// what to do, also for flags of iperf3.
func TestMistypedFlags(t *testing.T) {
	for _, tc := range []struct {
		args, want string
	}{
		{"measure far --streams 4", "try: it is --parallel here"},
		{"measure far --time 4", "try: it is --duration here"},
		{"measure far -R -p 5201", "try: the port follows the host: linerate measure HOST:PORT"},
		{"measure far --version4", "try: it is --ipv4 here"},
		{"measure far -u --test rr", "linerate: --udp is short for --test udp: leave out one of --udp and --test rr\n"},
		{"measure far --paralel 4", "try: did you mean --parallel?\n"},
		{"undo --dryrun", "try: did you mean --dry-run?\n"},
		{"inspect --jsn", "try: did you mean --json?\n"},
		{"serve --max 4", "try: did you mean --max-bytes or --max-clients or --max-duration or --max-rate?\n"},
		{"measure far --nope", "try: `linerate measure --help` lists the flags"},
		{"tune far --nope", "try: `linerate tune --help` lists the flags"},
		{"measure far --ouptut x", "try: did you mean --output?\n"},
		{"mesaure far", "try: did you mean linerate measure?\n"},
		{"nope", "try: linerate --help lists the commands\n"},
		{"measure far --nosuch", "try: `linerate measure --help` lists the flags"},
		{"serve -P 4", "try: `linerate serve --help` lists the flags"},
		{"measure far -t ten", "linerate: --duration ten: write a time, as in 10 (seconds), 500ms or 1m30s\n"},
		{"measure far -t 1.2.3", "linerate: --duration 1.2.3: write a time, as in 10 (seconds), 500ms or 1m30s\n"},
		{"measure far -t 99999999h",
			"linerate: --duration 99999999h: too long: write a time of less than 292 years, as in 24h\n"},
		{"serve --max-duration 5000000h", "linerate: --max-duration 5000000h: too long: write a time of less"},
		{"measure far -t 1e3", "linerate: --duration 1e3: write a time, as in 10 (seconds), 500ms or 1m30s\n"},
		{"measure far --parallel four", "linerate: --parallel four: write a whole number\n"},
		{"resolver measure far --rate many", "linerate: --rate many: write a number, as in 0.5 or 1000\n"},
		{"resolver measure far --queries -1", "linerate: --queries -1: write a whole number, 0 or more\n"},
		{"resolver measure far --edns-bytes 70000",
			"linerate: --edns-bytes 70000: write a whole number from 0 to 65535\n"},
		{"measure far --no-delay=maybe", "linerate: --no-delay maybe: write true or false, or the flag alone\n"},
		{"serve --allow-tuning=d9", "linerate: --allow-tuning: \"d9\": neither a class"},
		{"measure far --reverse --bidir",
			"linerate: --reverse and --bidir: give one of them; --bidir sends both ways already\n"},
		{"measure far --test bogus",
			"linerate: --test: no test \"bogus\"; choose from stream, rr, crr, udp, ping, mtu, load, burst\n"},
		{"measure far --test udp --batch big", "choose from gso, mmsg, single"},
		{"measure far --test stream --send post", "choose from copy, sendfile, splice"},
		{"measure far --test stream --receive post", "choose from copy, truncate"},
		{"measure far --test stream --cpu x",
			"linerate: --cpu x: write a list as in 0-3,8, or two with a slash between them, NEAR/FAR\n"},
	} {
		var out, errs bytes.Buffer
		status := Main(append([]string{"linerate"}, strings.Fields(tc.args)...), strings.NewReader(""), &out, &errs)
		if status != exitUsage || out.Len() != 0 || !strings.Contains(errs.String(), tc.want) {
			t.Errorf("%s: status %d, printed %q, said %q; want %q", tc.args, status, out.String(),
				errs.String(), tc.want)
		}
	}
}
