package dialect

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// serve answers dialects for the length of a test.
func serve(t *testing.T, accept []Acceptance, limits admission.Limits) (*Servers, *journal) {
	t.Helper()
	j := newJournal()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Listen(ctx, accept, Options{Host: "127.0.0.1", Gate: admission.New(limits), Log: j.add})
	if err != nil {
		t.Fatal(err)
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

// nextPort counts through ports that the kernel does not give to anybody by itself.
var nextPort atomic.Int32

// freePort is a port that nobody listens on, with TCP or UDP, at this moment. The three after it are nobody else's in this test.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 12000 + os.Getpid()%20*800 + int(nextPort.Add(4))%800
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		pc, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = pc.Close()
		return port
	}
	t.Fatal("no port is free for both TCP and UDP")
	return 0
}

// start starts a server program for the length of a test and waits until its port is taken. The output can be read when it has ended.
func start(t *testing.T, port int, name string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	cmd := exec.CommandContext(ctx, program(t, name), args...)
	p := &running{cmd: cmd}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		p.wait()
	})
	for until := time.Now().Add(5 * time.Second); ; {
		// Taking the port is what a server does; looking must not connect, which a server for one client would take for it.
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return p
		}
		_ = l.Close()
		pc, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		if err != nil {
			return p
		}
		_ = pc.Close()
		if time.Now().After(until) {
			t.Fatalf("%s does not listen on port %d", name, port)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// running is a program that was started.
type running struct {
	cmd  *exec.Cmd
	once sync.Once
	out  bytes.Buffer
}

func (r *running) wait() string {
	r.once.Do(func() { _ = r.cmd.Wait() }) // killed or not: the output is what counts
	return r.out.String()
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
