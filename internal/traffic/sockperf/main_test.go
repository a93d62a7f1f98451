package sockperf

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// TestMain fails the package when a test leaves goroutines of this package or descriptors behind.
func TestMain(m *testing.M) {
	before := openDescriptors()
	code := m.Run()
	if code == 0 {
		if left := leftovers(); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines of this package outlive the tests:\n%s\n", left)
			code = 1
		}
		// The runtime keeps its poller and its urandom open, once it has them.
		if after := openDescriptors(); after > before+4 {
			fmt.Fprintf(os.Stderr, "%d descriptors before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

// openDescriptors counts this process's descriptors; -1 where that cannot be seen.
func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
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

// journal collects what a server says.
type journal struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
}

func newJournal() *journal { return &journal{more: make(chan struct{}, 1000)} }

func (j *journal) log(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
	j.more <- struct{}{}
}

// await waits until a line has all the words.
func (j *journal) await(t *testing.T, words ...string) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		j.mu.Lock()
		for _, line := range j.lines {
			missing := 0
			for _, w := range words {
				if !strings.Contains(line, w) {
					missing++
				}
			}
			if missing == 0 {
				j.mu.Unlock()
				return line
			}
		}
		all := strings.Join(j.lines, "\n")
		j.mu.Unlock()
		select {
		case <-j.more:
		case <-timeout:
			t.Fatalf("nothing said of %q; said:\n%s", words, all)
		}
	}
}

// startServer serves on loopback until the test ends, and gives its address and a way to end it early.
func startServer(t testing.TB, o ServerOptions) (s *Server, stop func()) {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{PacketsPerSecond: 1e6})
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Listen(ctx, o)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the server does not end")
		}
	})
	t.Cleanup(stop)
	return s, stop
}

// program finds the real sockperf; without it the test is skipped, unless the run was told that it must be there.
func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sockperf")
	if err != nil {
		if strings.Contains(os.Getenv("LINERATE_REQUIRE"), "peers") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// sockperf runs the real program to its end and returns what it said, without colours. Any goroutine may call it.
func sockperf(t *testing.T, args ...string) string {
	path := "sockperf" // the caller has looked for it
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("sockperf %v: %v\n%s", args, err, out.String())
	}
	return strings.NewReplacer("\x1b[2;35m", "", "\x1b[0m", "").Replace(out.String())
}

// sockperfServer runs the real server until the test ends.
func sockperfServer(t *testing.T, args ...string) {
	t.Helper()
	path := program(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, append([]string{"sr"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // an interrupt is no success, and no failure either
		if t.Failed() {
			t.Logf("sockperf sr %v:\n%s", args, out.String())
		}
	})
}
