package perf_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/perf"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestProbe checks that the clock works for root, and that counters of the processor are refused
// exactly where /sys shows none.
func TestProbe(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	if p := perf.Probe(perf.CPUClock(), 0); p.Answer != perf.Works {
		t.Fatalf("%s: %s (%s)", p.Event.Name, p.Answer, p.Reason)
	}
	var pmu []string
	for _, pattern := range []string{"cpu", "cpu_*", "armv*"} {
		found, _ := filepath.Glob("/sys/bus/event_source/devices/" + pattern)
		pmu = append(pmu, found...)
	}
	p := perf.Probe(perf.Events()[0], 0)
	if (p.Answer == perf.NotSupported) != (len(pmu) == 0) || p.Answer != perf.Works && p.Reason == "" {
		t.Errorf("%s: %s (%s), counters %v", p.Event.Name, p.Answer, p.Reason, pmu)
	}
}

// TestSampler samples one CPU while a thread works there: samples, their clock, and the counts fit
// together.
func TestSampler(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	cpus, err := sys.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[0]
	const period = 1_003_009
	s, err := perf.Open(perf.Options{Event: perf.CPUClock(), Period: period, CPUs: []int{cpu}, Pages: 2048})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := perf.Now()
	if err := s.Enable(); err != nil {
		t.Fatal(err)
	}
	var n, strange uint64
	visit := perf.Visitor{Sample: func(x perf.Sample) {
		n++
		if x.CPU != cpu || x.Nanos < began || x.Nanos > perf.Now() || x.Period != period || x.IP == 0 {
			strange++
		}
		if x.Mode == perf.ModeKernel && len(x.Chain) == 0 {
			strange++
		}
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // ends with the goroutine, and the mask with it
		if err := sys.Pin(cpu); err != nil {
			t.Error(err)
			return
		}
		// 200 ms of processor time, however long that takes. Where a host stops this machine, the clock
		// of the thread goes on and no sample comes, so one step counts 100 µs at most.
		last, _ := sys.ThreadTime(sys.ThreadID())
		for used := time.Duration(0); used < 200*time.Millisecond; {
			now, _ := sys.ThreadTime(sys.ThreadID())
			used, last = used+min(now-last, 100*time.Microsecond), now
		}
	}()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-time.After(20 * time.Millisecond):
		}
		if err := s.Drain(visit); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Disable(); err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(visit); err != nil {
		t.Fatal(err)
	}
	counts, err := s.Counts()
	if err != nil || len(counts) != 1 {
		t.Fatal(counts, err)
	}
	// A busy CPU misses no tick by more than the load of the hypervisor: at least half of 200 are
	// here.
	if n < 100 || strange > 0 {
		t.Errorf("%d samples, %d of them strange", n, strange)
	}
	c := counts[0]
	if c.Running == 0 || c.Running > c.Enabled || c.Lost > 0 {
		t.Errorf("%+v", c)
	}
}

// TestLost checks that samples without room in the ring are counted, by the records and by the
// event itself.
func TestLost(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	s, err := perf.Open(perf.Options{Event: perf.CPUClock(), Period: 200_003, CPUs: []int{0}, Pages: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Enable(); err != nil {
		t.Fatal(err)
	}
	// One page holds some dozen samples; wait until the kernel has lost one, a minute at most.
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		counts, err := s.Counts()
		if err != nil {
			t.Fatal(err)
		}
		if !counts[0].LostKnown {
			t.Log("this kernel does not count what it loses")
			return
		}
		if counts[0].Lost > 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("nothing lost in a ring of one page: %+v", counts)
		}
	}
}

// TestUnprivileged asks as an ordinary user: the answer is a refusal with the reason, or success
// where the administrator has allowed it.
func TestUnprivileged(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	if os.Getenv("LINERATE_TEST_PROBE") != "" {
		p := perf.Probe(perf.CPUClock(), 0)
		_, err := perf.Open(perf.Options{Event: perf.CPUClock(), Period: 1_003_009, CPUs: []int{0}})
		t.Logf("answer=%s reason=%q permission=%v", p.Answer, p.Reason, errors.Is(err, fs.ErrPermission))
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for d := dir; filepath.Dir(d) != d && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { // the other user must reach it
			t.Fatal(err)
		}
	}
	copied := filepath.Join(dir, "test")
	b, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(copied, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "-test.run=^TestUnprivileged$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LINERATE_TEST_PROBE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	paranoid, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(string(paranoid), "-1") || strings.HasPrefix(string(paranoid), "0") {
		t.Logf("the administrator lets every user sample: %s", out)
		return
	}
	if !strings.Contains(string(out), "answer=not-permitted") || !strings.Contains(string(out), "permission=true") ||
		!strings.Contains(string(out), "perf_event_paranoid is "+strings.TrimSpace(string(paranoid))) {
		t.Errorf("%s", out)
	}
}
