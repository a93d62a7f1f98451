//go:build soak

package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/hub/internal/fleet/swarm"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// hubProcess starts a hub; stop ends it. A line written to orders names the file of its next
// profile.
func hubProcess(t *testing.T, o Options) (pid int, orders io.Writer, stop func()) {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(own)
	c.Env = append(os.Environ(), asHub+"="+string(b), "GOMEMLIMIT=1200MiB")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = in.Close()
			if err := c.Wait(); err != nil {
				t.Errorf("hub: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("hub: %q, %v", line, err)
	}
	return c.Process.Pid, in, stop
}

// memory returns a line of /proc/PID/status in megabytes.
func memory(t *testing.T, pid int, key string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key+":" {
			n, _ := strconv.Atoi(f[1])
			return n / 1024
		}
	}
	return 0
}

// cpu returns the CPU time that a process has used, in seconds: fields 14 and 15 of
// proc_pid_stat(5).
func cpu(t *testing.T, pid int) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		t.Fatalf("stat of %d: %q", pid, b)
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100
}

// TestScale plays LINERATE_FLEET_HOSTS hosts (10 000 by default) against a hub in another process,
// and prints what each step took. Times are printed and not judged; counts and memory are.
func TestScale(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	hosts := 10_000
	if text := os.Getenv("LINERATE_FLEET_HOSTS"); text != "" {
		var err error
		if hosts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Max < uint64(hosts)+500 {
		t.Fatalf("%d file descriptors for %d hosts: %v", limit.Max, hosts, err)
	}
	o := options(t)
	pid, orders, stopHub := hubProcess(t, o)
	address, token := invite(t, o.Dir, Request{Uses: hosts})
	var s swarm.Swarm
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	load := func() string {
		b, _ := os.ReadFile("/proc/loadavg")
		return strings.TrimSpace(string(b))
	}
	// profile begins the profiles of a step, where LINERATE_FLEET_PROFILES names a directory.
	profile := func(step string) {
		if dir := os.Getenv("LINERATE_FLEET_PROFILES"); dir != "" {
			profileTo(filepath.Join(dir, step+".hosts"))
			if _, err := fmt.Fprintln(orders, filepath.Join(dir, step+".hub")); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer profileTo("")
	begin := time.Now()
	spent, spentHub := cpu(t, os.Getpid()), cpu(t, pid)
	say := func(format string, a ...any) {
		// The machine may be shared: the time of the processors is what the step needed.
		hosts, hub := cpu(t, os.Getpid()), cpu(t, pid)
		t.Logf("%-55s %7.1f s, CPU of the hosts %6.1f s, of the hub %6.1f s  hub %4d MB, highest %4d MB  load %s",
			fmt.Sprintf(format, a...), time.Since(begin).Seconds(), hosts-spent, hub-spentHub,
			memory(t, pid, "VmRSS"), memory(t, pid, "VmHWM"), load())
		spent, spentHub = hosts, hub
		begin = time.Now()
	}
	profile("join")
	wait := func(what string, ok func() bool) {
		for deadline := time.Now().Add(15 * time.Minute); !ok(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: joined %d, connected %d, failed %d: %v", what, s.Joined.Load(), s.Connected.Load(),
					s.Failed.Load(), s.Err())
			}
		}
	}
	done.Go(func() {
		s.Run(ctx, swarm.Options{Hosts: hosts, Address: address, Token: token, Together: 256})
	})
	defer done.Wait()
	defer stop()
	wait("join", func() bool { return s.Joined.Load() == int64(hosts) })
	say("%d hosts have joined", hosts)
	wait("connect", func() bool { return s.Connected.Load() >= int64(hosts) })
	say("all are connected")
	known := func() bool {
		var doc report.FleetStatusDocument
		if err := Call(t.Context(), o.Dir, Request{Do: DoStatus}, &doc, nil); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range doc.Classes {
			if c.Name != "unknown" {
				n += c.Hosts
			}
		}
		if doc.Cut != 0 {
			t.Errorf("the bus cut %d connections", doc.Cut)
		}
		return n == hosts
	}
	wait("facts", known)
	say("the facts of all are known")
	profile("asks")
	everyone := func() {
		for range 3 {
			var doc report.FleetAskDocument
			if err := Call(t.Context(), o.Dir, Request{Do: DoAsk, Verb: node.VerbPing, WithinMS: 60_000},
				&doc, nil); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, a := range doc.Answers {
				n += len(a.Hosts)
			}
			if n != hosts || doc.Incomplete {
				t.Errorf("%d of %d hosts answered, incomplete %v", n, hosts, doc.Incomplete)
			}
			say("%d of %d answered a question in %.2f s", n, doc.Asked, doc.Seconds)
		}
		var fetched report.FleetFetchDocument
		var size int64
		if err := Call(t.Context(), o.Dir, Request{Do: DoFetch, Document: node.DocumentInspect}, &fetched,
			func(i Item) error {
				size += int64(len(i.Data))
				return nil
			}); err != nil {
			t.Fatal(err)
		}
		if len(fetched.Fetched) != hosts || len(fetched.Missing) > 0 {
			t.Errorf("%d documents, %d missing", len(fetched.Fetched), len(fetched.Missing))
		}
		say("%d documents fetched, %d MB, %d missing", len(fetched.Fetched), size>>20, len(fetched.Missing))
	}
	everyone()
	before := s.Connected.Load()
	stopHub()
	begin = time.Now()
	pid, orders, _ = hubProcess(t, o)
	spent, spentHub = cpu(t, os.Getpid()), 0
	profile("return")
	wait("reconnect", func() bool { return s.Connected.Load() >= before+int64(hosts) })
	say("all are connected again after a restart of the hub")
	wait("facts", known)
	say("the facts of all are known again")
	profile("asks-again")
	everyone()
	if s.Failed.Load() != 0 {
		t.Errorf("%d hosts failed: %v", s.Failed.Load(), s.Err())
	}
	if most := memory(t, pid, "VmHWM"); most > 1500 {
		t.Errorf("the hub took %d MB, want at most 1500", most)
	}
}
