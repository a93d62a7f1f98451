package ttcp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// TestMain fails the package when a test leaves goroutines of this package or descriptors behind.
func TestMain(m *testing.M) {
	before := descriptors()
	code := m.Run()
	if code == 0 {
		if left := leftovers(); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines of this package outlive the tests:\n%s\n", left)
			code = 1
		}
		// The runtime's own poller opens a few of its own with the first socket.
		if after := descriptors(); after > before+6 {
			fmt.Fprintf(os.Stderr, "%d descriptors before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

// descriptors counts this process's descriptors; 0 where that cannot be seen.
func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// leftovers waits for goroutines that are just ending; it gives up after five seconds.
func leftovers() string {
	var found string
	for range 500 {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		found = ""
		for g := range strings.SplitSeq(string(buf), "\n\n") {
			if strings.Contains(g, "internal/traffic") && !strings.Contains(g, "TestMain") {
				found += g + "\n\n"
			}
		}
		if found == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return found
}

// journal keeps what a server says.
type journal struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
}

func newJournal() *journal { return &journal{more: make(chan struct{}, 1)} }

func (j *journal) add(line string) {
	j.mu.Lock()
	j.lines = append(j.lines, line)
	j.mu.Unlock()
	select {
	case j.more <- struct{}{}:
	default:
	}
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.lines...)
}

// await waits for n lines that contain part.
func (j *journal) await(t *testing.T, n int, part string) []string {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		var found []string
		for _, l := range j.all() {
			if strings.Contains(l, part) {
				found = append(found, l)
			}
		}
		if len(found) >= n {
			return found
		}
		select {
		case <-j.more:
		case <-timeout:
			t.Fatalf("%d lines with %q, want %d, in:\n%s", len(found), part, n, strings.Join(j.all(), "\n"))
		}
	}
}

// serve runs a server for the length of a test.
func serve(t *testing.T, limits admission.Limits, change func(*Server)) (*Server, *journal) {
	t.Helper()
	j := newJournal()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Listen(ctx, ServerOptions{Address: "127.0.0.1:0", Gate: admission.New(limits), Log: j.add})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s, j
}

// program skips a test when the real program is missing, unless the run was told that it must be there.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if strings.Contains(os.Getenv("LINERATE_REQUIRE"), "peers") {
			t.Fatalf("%s is missing: %v", name, err)
		}
		t.Skipf("%s is not installed: %v", name, err)
	}
	return path
}

// run runs a program to its end, which must come within ten seconds, and gives its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program(t, name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
