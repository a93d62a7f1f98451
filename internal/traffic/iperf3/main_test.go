package iperf3

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// TestMain fails the package when its tests leave goroutines or descriptors behind.
func TestMain(m *testing.M) {
	// The tests wait for clocks and other processes; as many at a time as there are processors would take minutes.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	before := openDescriptors()
	code := m.Run()
	if code == 0 {
		if left := leftovers(); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines of this package outlive the tests:\n%s\n", left)
			code = 1
		}
		// The runtime keeps an epoll set and a pipe of its own from the first socket on, and the engine what it probed with.
		if after := openDescriptors(); after > before+16 {
			fmt.Fprintf(os.Stderr, "%d descriptors before the tests, %d after them\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
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

// openDescriptors counts this process's descriptors; 0 where that cannot be seen.
func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// logged is what a server of a test has said.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// has tells whether a line with all of the words was said.
func (l *logged) has(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// eventually waits for something that another goroutine does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// ourServer is a server of ours for one test; it must have ended cleanly by the end of it.
func ourServer(t *testing.T, address string, limits admission.Limits) (netip.AddrPort, *logged) {
	t.Helper()
	var said logged
	s, err := Listen(t.Context(), ServerOptions{Address: address, Gate: admission.New(limits), Log: said.add})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", &said)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.sessions) != 0 {
			t.Errorf("%d sessions are left", len(s.sessions))
		}
		// All places of strangers are free again when one source can take all of its own.
		for i := range maxStrangersPerSource {
			if _, ok := s.strangers.Enter(netip.MustParseAddr("127.0.0.1")); !ok {
				t.Fatalf("%d strangers are left", maxStrangersPerSource-i)
			}
		}
	})
	return s.Addr(), &said
}

// program is the path of the real iperf3. Without it the test is skipped, unless it must be there.
func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("iperf3")
	if err == nil {
		return path
	}
	if strings.Contains(os.Getenv("LINERATE_REQUIRE"), "peers") {
		t.Fatalf("iperf3 is required: %v", err)
	}
	t.Skipf("iperf3 is missing: %v", err)
	return ""
}

// realClient runs the program as a client of addr to its end and gives what it printed.
func realClient(t *testing.T, addr netip.AddrPort, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	args = append([]string{"-c", addr.Addr().String(), "-p", strconv.Itoa(int(addr.Port()))}, args...)
	out, err := exec.CommandContext(ctx, program(t), args...).CombinedOutput()
	return string(out), err
}

// realServer starts the program as a server on a free port of loopback; it ends with the test.
func realServer(t *testing.T, args ...string) (addr netip.AddrPort, said *logged, process *os.Process) {
	t.Helper()
	path := program(t)
	for range 10 {
		port := freePort(t)
		ctx, cancel := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, path, append([]string{"-s", "--forceflush", "-p", strconv.Itoa(port)}, args...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said = new(logged)
		ready, ended := make(chan bool, 1), make(chan struct{})
		go func() {
			defer close(ended)
			for s := bufio.NewScanner(out); s.Scan(); {
				said.add(s.Text())
				if strings.Contains(s.Text(), "Server listening") {
					select {
					case ready <- true:
					default:
					}
				}
			}
			_ = cmd.Wait() // killed, as a rule
			select {
			case ready <- false:
			default:
			}
		}()
		if <-ready {
			t.Cleanup(func() {
				cancel()
				<-ended
				if t.Failed() {
					t.Logf("the program said:\n%s%s", said, &stderr)
				}
			})
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), said, cmd.Process
		}
		cancel() // somebody else was faster with that port
		<-ended
	}
	t.Fatal("iperf3 does not start")
	return netip.AddrPort{}, nil, nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.ListenTCP("tcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
