package daemon_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
)

// killRounds is the number of kills; LINERATE_KILL_ROUNDS overrides it. Package record tests the
// history alone, with many series and simulated time; this test has the whole daemon, real seconds
// and clients that query without pause.
const killRounds = 3

// mayForget is how many samples of a series may be gone.
const mayForget = 10

// TestHubIsKilled kills a hub that samples and answers, at random moments, and queries the next one
// for every sample that the one before had shown. It does not count seconds, because a busy machine
// samples less often.
func TestHubIsKilled(t *testing.T) {
	testenv.Need(t, testenv.Long)
	rounds := killRounds
	if v := os.Getenv("LINERATE_KILL_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(3, 4))
	type span struct{ first, last, samples int64 }
	var spans []span
	var starts []time.Duration
	for round := range rounds {
		h := startHub(t, dir)
		starts = append(starts, h.took)
		// Everything from before the last kill is there now.
		for i, s := range spans {
			if i < len(spans)-3 {
				continue // the one before has looked at it; all of it is looked at in the end
			}
			if have := h.count(t, s.first, s.last); s.samples-have > mayForget {
				t.Fatalf("round %d: start %d had shown %d samples, %d are left", round, i, s.samples, have)
			}
		}
		first := h.newest(t)
		stop := h.load()
		time.AfterFunc(2*time.Second+time.Duration(random.IntN(2000))*time.Millisecond,
			func() { _ = h.cmd.Process.Kill() })
		shown := span{first: first, last: first}
		for {
			last, err := h.newestNow()
			if err != nil {
				break // killed
			}
			n, err := h.countNow(first, last)
			if err != nil {
				break
			}
			shown.last, shown.samples = last, n
		}
		stop()
		h.wait(t)
		spans = append(spans, shown)
	}
	h := startHub(t, dir)
	var shown, lost int64
	for i, s := range spans {
		have := h.count(t, s.first, s.last)
		shown += s.samples
		lost = max(lost, s.samples-have)
		if s.samples-have > mayForget {
			t.Errorf("start %d had shown %d samples, %d are left", i, s.samples, have)
		}
	}
	if got := h.get(t, "/api/linerate/v1/status", nil); !strings.Contains(got, `"state":"ok"`) {
		t.Errorf("after %d kills: %s", rounds, got)
	}
	_ = h.cmd.Process.Kill()
	h.wait(t)
	slices.Sort(starts)
	t.Logf("%d kills, %d samples shown, most lost of one start %d, from exec to the first answer of a query: "+
		"median %v, worst %v", rounds, shown, lost,
		starts[len(starts)/2].Round(time.Millisecond), starts[len(starts)-1].Round(time.Millisecond))
}

// running is a hub in a process of its own.
type running struct {
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer
	took   time.Duration // from exec to the first answer of a query
	client *http.Client
}

func startHub(t *testing.T, dir string, flags ...string) *running {
	t.Helper()
	return startHubWith(t, &http.Client{Timeout: 2 * time.Minute}, dir, flags...)
}

// startHubWith starts a hub that a client reaches.
func startHubWith(t *testing.T, client *http.Client, dir string, flags ...string) *running {
	t.Helper()
	h := &running{stderr: new(bytes.Buffer), client: client}
	h.cmd = exec.CommandContext(t.Context(), os.Args[0],
		append([]string{"--data", dir, "--listen", "127.0.0.1:0"}, flags...)...)
	h.cmd.Env = append(os.Environ(), asHub+"=1")
	pipe, err := h.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill() })
	lines := bufio.NewScanner(io.TeeReader(pipe, h.stderr))
	for h.url == "" && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "the page is at "); ok {
			h.url, _, _ = strings.Cut(rest, `/"`)
		}
	}
	if h.url == "" {
		t.Fatalf("the hub did not start: %s", h.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, pipe) }()
	for {
		if _, err := h.newestNow(); err == nil {
			h.took = time.Since(began)
			return h
		}
	}
}

func (h *running) wait(t *testing.T) {
	t.Helper()
	var exit *exec.ExitError
	if err := h.cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the hub ended without a signal: %v: %s", err, h.stderr)
	}
}

// load sends the queries of a page, without pause, until stop is called.
func (h *running) load() (stop func()) {
	var askers sync.WaitGroup
	done := make(chan struct{})
	for _, query := range []string{"rate(linerate_interface_receive_bytes_total[1m])",
		"sum by (mode) (rate(linerate_cpu_seconds_total[10s]))"} {
		askers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				now := time.Now().Unix()
				r, err := h.client.Get(h.url + "/api/v1/query_range?" + url.Values{"query": {query},
					"start": {fmt.Sprint(now - 3600)}, "end": {fmt.Sprint(now)}, "step": {"10"}}.Encode())
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		})
	}
	return func() { close(done); askers.Wait() }
}

func (h *running) get(t *testing.T, path string, v url.Values) string {
	t.Helper()
	b, err := h.fetch(path, v)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(b)
}

func (h *running) fetch(path string, v url.Values) ([]byte, error) {
	r, err := h.client.Get(h.url + path + "?" + v.Encode())
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, b)
	}
	return b, err
}

// errNone reports a query without a result.
var errNone = errors.New("no result")

// number queries one number.
func (h *running) number(query string, at int64) (int64, error) {
	v := url.Values{"query": {query}}
	if at != 0 {
		v.Set("time", fmt.Sprint(at))
	}
	b, err := h.fetch("/api/v1/query", v)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return 0, err
	}
	if len(answer.Data.Result) == 0 {
		return 0, fmt.Errorf("%s: %w", query, errNone)
	}
	if len(answer.Data.Result) != 1 {
		return 0, fmt.Errorf("%s: %d results", query, len(answer.Data.Result))
	}
	n, err := strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
	return int64(n), err
}

// newestNow returns the second of the newest sample.
func (h *running) newestNow() (int64, error) {
	return h.number(`max(timestamp(linerate_interface_up{interface="lo"}))`, 0)
}

func (h *running) newest(t *testing.T) int64 {
	t.Helper()
	n, err := h.newestNow()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// countNow returns how many samples one series has from the second first to last.
func (h *running) countNow(first, last int64) (int64, error) {
	return h.number(fmt.Sprintf(`count_over_time(linerate_interface_up{interface="lo"}[%ds])`, last-first+1), last)
}

func (h *running) count(t *testing.T, first, last int64) int64 {
	t.Helper()
	n, err := h.countNow(first, last)
	if err != nil && !errors.Is(err, errNone) { // what a starved hub showed, ten at most, may all be gone
		t.Fatal(err)
	}
	return n
}
