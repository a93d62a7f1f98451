package stamp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
}

func (j *journal) log(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
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

// python finds the interpreter of the other side; without it the test is skipped, unless the run was told that it must be there.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		if strings.Contains(os.Getenv("LINERATE_REQUIRE"), "peers") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// pythonReflector runs the reflector of the other side until the test ends and gives its address.
func pythonReflector(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, python(t), append([]string{"testdata/peer.py", "reflect"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("peer: %v\n%s", err, stderr.String())
		}
		cancel()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("peer says no port: %v", err)
	}
	return "127.0.0.1:" + strings.TrimSpace(port)
}

// answer is what the other side's sender says of one packet.
type answer struct {
	Sent, Bytes     int
	Seq, Sender     uint32
	SSID            int
	TTL             *int
	Hex, Request    string
	Zero, Echo, MAC bool
	TLVMAC          bool `json:"tlv_mac"`
	Z, Order        bool
	Multiplier      int
	RTT             int64
	Error           string
}

// pythonSender runs the sender of the other side and gives what it got.
func pythonSender(t *testing.T, mode string, s *Server, count int, args ...string) []answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	args = append([]string{"testdata/peer.py", "send", mode, "127.0.0.1", fmt.Sprint(s.Addr().Port()), fmt.Sprint(count)}, args...)
	cmd := exec.CommandContext(ctx, python(t), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("peer: %v\n%s", err, stderr.String())
	}
	var answers []answer
	for line := range strings.Lines(string(out)) {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) != count {
		t.Fatalf("%d answers of %d", len(answers), count)
	}
	return answers
}
