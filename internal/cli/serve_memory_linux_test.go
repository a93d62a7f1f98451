package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// TestServeHoldsAThousandClients connects a thousand clients from this process to a `linerate
// serve` in another, and reads from the kernel how much memory that server takes.
func TestServeHoldsAThousandClients(t *testing.T) {
	testenv.Need(t, testenv.Long)
	const clients, bound = 1000, 20_000_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Max < clients+200 {
		testenv.Missing(t, testenv.Long, fmt.Sprintf("%d descriptors; the hard limit is %d (%v)", clients+200,
			files.Max, err))
	}
	key := wire.NewKey().String()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	serve := exec.CommandContext(t.Context(), exe, "serve", "--listen", "127.0.0.1:0", "--key", key)
	serve.Args[0] = "linerate" // which TestMain makes it
	serve.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	serve.Stderr = &said
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Signal(os.Interrupt)
		if err := serve.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.Fields(line)[2] // listening on ADDRESS …
	before := residentBytes(t, serve.Process.Pid)
	var (
		dialers sync.WaitGroup
		mu      sync.Mutex
		all     []*peer.Client
	)
	began := time.Now()
	for range 16 {
		dialers.Go(func() {
			for range clients / 16 {
				c, err := peer.Connect(t.Context(), addr, peer.ConnectOptions{Key: key, Timeout: time.Minute})
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { c.Close() })
				mu.Lock()
				all = append(all, c)
				mu.Unlock()
			}
		})
	}
	dialers.Wait()
	for len(all) < clients && !t.Failed() { // the remainder of the division
		c, err := peer.Connect(t.Context(), addr, peer.ConnectOptions{Key: key, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		all = append(all, c)
	}
	if t.Failed() {
		t.FailNow()
	}
	cost := residentBytes(t, serve.Process.Pid) - before
	t.Logf("%d clients in %v cost %d KiB, %d bytes each; without clients serve has %d KiB", clients,
		time.Since(began).Round(time.Millisecond), cost>>10, cost/clients, before>>10)
	if cost > bound {
		t.Errorf("%d idle clients cost %d bytes, more than %d", clients, cost, bound)
	}
	// It still serves the last client.
	spec := traffic.Spec{Test: traffic.RR, Duration: 100 * time.Millisecond, Interval: 100 * time.Millisecond}
	if _, err := all[clients-1].Run(t.Context(), spec, nil); err != nil {
		t.Error(err)
	}
	for _, c := range all {
		select {
		case <-c.Done():
			t.Fatalf("a client was lost; serve said:\n%s", said.String())
		default:
		}
	}
}

// residentBytes is VmRSS of proc_pid_status(5).
func residentBytes(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
