package admission

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLogIsNotFlooded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		say := LimitLines(func(s string) { lines = append(lines, s) }, 3, "iperf3")
		expect := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
			lines = nil
		}
		for range 1000 {
			say("a")
		}
		expect("flood", "a", "a", "a")
		time.Sleep(59 * time.Second)
		say("b")
		expect("same minute")
		time.Sleep(time.Second)
		say("c")
		expect("next minute", "iperf3: 998 more sentences like the last ones were left out within a minute", "c")
		time.Sleep(time.Hour)
		say("d")
		expect("after a quiet hour", "d")
	})
}

func TestLimitedLogFromManyGoroutines(t *testing.T) {
	var mu sync.Mutex
	var all strings.Builder
	say := LimitLines(func(s string) {
		mu.Lock()
		defer mu.Unlock()
		all.WriteString(s)
	}, 10, "stamp")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				say("x")
			}
		})
	}
	wg.Wait()
	if got := all.String(); got != "xxxxxxxxxx" {
		t.Errorf("%d goroutines wrote %q", 8, got)
	}
	LimitLines(nil, 1, "no client")("nothing")
}

func TestSentencesStayOneLine(t *testing.T) {
	for from, want := range map[string]string{
		"a: b, 12 µs … ok":              "a: b, 12 µs … ok",
		"a\nfake line\x1b[2J\r\x00\x7f": "a fake line\ufffd[2J\ufffd\ufffd\ufffd",
		"\u0085\u009b31m\u2028x\xff":    "\ufffd\ufffd31m\ufffdx\ufffd",
	} {
		var got string
		LimitLines(func(s string) { got = s }, 1, "")(from)
		if got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
}
