package foreign_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/export"
	"github.com/linerate/linerate/internal/profile/foreign"
)

func read(t *testing.T, name string) *profile.Profile {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := foreign.Read(file, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// samplesOf returns the own samples of a function.
func samplesOf(p *profile.Profile, name string) uint64 {
	for _, f := range p.Functions {
		if f.Name == name {
			return f.Samples
		}
	}
	return 0
}

// TestPerfOfThisKernel checks the samples of a timer: those where interrupts are allowed again
// belong to the callers.
func TestPerfOfThisKernel(t *testing.T) {
	p := read(t, "perf-cpu-clock.txt")
	b, err := os.ReadFile("testdata/perf-cpu-clock.txt")
	if err != nil {
		t.Fatal(err)
	}
	heads := uint64(strings.Count(string(b), "cpu-clock:"))
	if p.Format != string(foreign.PerfScript) || p.Event != "cpu-clock" || p.Samples != heads || !p.Timer {
		t.Errorf("format %q, event %q, %d of %d samples", p.Format, p.Event, p.Samples, heads)
	}
	if want := 0.02 * float64(p.Busy); p.BusySeconds < 0.99*want || p.BusySeconds > 1.01*want {
		t.Errorf("busy for %v s, want %v", p.BusySeconds, want)
	}
	if n := samplesOf(p, "_raw_spin_unlock_irqrestore"); n != 0 {
		t.Errorf("%d samples are left where interrupts are allowed again", n)
	}
	leaves := uint64(0)
	for block := range strings.SplitSeq(string(b), "\n\n") {
		if lines := strings.Split(block, "\n"); len(lines) > 1 && strings.Contains(lines[1], " _raw_spin_unlock_irq") {
			leaves++
		}
	}
	if leaves == 0 || p.Moved < leaves {
		t.Errorf("%d samples moved, at least %d should be", p.Moved, leaves)
	}
	if p.StageRow("TCP tx") == nil || p.StageRow("TCP rx") == nil {
		t.Errorf("stages %v", p.Stages)
	}
}

// TestPerfOfXDP checks a stack with a BPF program, modules and another version of the kernel.
func TestPerfOfXDP(t *testing.T) {
	p := read(t, "perf-mlx5-xdp.txt")
	if p.Samples != 1 || p.Busy != 1 || p.Stacks[0].Context != profile.ContextSoftIRQ {
		t.Errorf("%d samples, %d busy, context %q", p.Samples, p.Busy, p.Stacks[0].Context)
	}
	if p.Stages[0].Name != "BPF" {
		t.Errorf("stage %q", p.Stages[0].Name)
	}
	for _, f := range p.Functions {
		if f.Name == "mlx5e_poll_rx_cq" && (f.Module != "mlx5_core" || f.Stage != "driver rx") {
			t.Errorf("%s is of %q in %q", f.Name, f.Module, f.Stage)
		}
	}
}

// TestPmcstat checks that a tree is turned upside down: the leaf comes first, callers below it, and
// what they do not claim ends at the callee.
func TestPmcstat(t *testing.T) {
	p := read(t, "pmcstat-iperf3.txt")
	if p.Event != "CLOCK.HARD" || p.Samples != 59+14+14+4+2+2+1+1+1 {
		t.Errorf("event %q, %d samples", p.Event, p.Samples)
	}
	if p.Busy != p.Samples-1 {
		t.Errorf("%d of %d busy: one tree is the idle loop", p.Busy, p.Samples)
	}
	for name, want := range map[string]uint64{"copyout_nosmap_std": 59, "acpi_timer_get_timecount": 14, "tcp_output": 2} {
		if got := samplesOf(p, name); got != want {
			t.Errorf("%s has %d samples, want %d", name, got, want)
		}
	}
	if s := p.StageRow("socket/syscall"); s == nil || s.Samples != 59+14+4 {
		t.Errorf("sockets %+v", s)
	}
	if w := p.WorkRow("copy"); w == nil || w.Samples != 59 {
		t.Errorf("copies %+v", w)
	}
	if s := p.StageRow(profile.StageUser); s == nil || s.Samples != 2 {
		t.Errorf("programs %+v", s)
	}

	branches := read(t, "pmcstat-branches.txt")
	// 5156 samples of the leaf, of which callers claim 2610; of these 1723, and so on.
	if branches.Samples != 5156 || samplesOf(branches, "fletcher_2_native") != 5156 {
		t.Errorf("%d samples, %d own", branches.Samples, samplesOf(branches, "fletcher_2_native"))
	}
	var inclusive uint64
	for _, f := range branches.Functions {
		if f.Name == "arc_buf_thaw" {
			inclusive = f.Inclusive
		}
	}
	if inclusive != 1723 {
		t.Errorf("arc_buf_thaw is above %d samples, want 1723", inclusive)
	}
}

func TestDTrace(t *testing.T) {
	p := read(t, "dtrace-open.txt")
	if p.Format != string(foreign.DTrace) || p.Samples != 75 || samplesOf(p, "mutex_enter") != 15 {
		t.Errorf("format %q, %d samples, %d in mutex_enter", p.Format, p.Samples, samplesOf(p, "mutex_enter"))
	}
	if w := p.WorkRow("lock"); w == nil || w.Samples != 30 {
		t.Errorf("locks %+v", w)
	}
}

// TestFilesOfOthers reads what other programs wrote on other systems. Each row has what was counted
// by hand in the file.
func TestFilesOfOthers(t *testing.T) {
	for _, c := range []struct {
		file          string
		format        foreign.Format
		event         string
		samples       uint64
		leaf          string
		own           uint64
		stage         string // of the leaf's stack
		ofStage       uint64
		kernel, named uint64
		warning       string
	}{
		// The second tree ends in the idle loop of FreeBSD, which its leaf does not show.
		{"pmcstat-dd.txt", foreign.Pmcstat, "CLOCK.HARD", 236, "copyout_nosmap_std", 7, "copy", 7, 234, 234,
			"1 other events than CLOCK.HARD"},
		{"dtrace-both.txt", foreign.DTrace, "profile", 3,
			"tokio::runtime::task::harness::Harness<T,S>::poll::hdaaa15b8bfc6c3b5", 1, profile.StageUser, 1, 2, 2, ""},
		{"perf-two-events.txt", foreign.PerfScript, "instructions", 3, "ext4_file_read_iter", 1, "files", 1, 1, 1,
			"5 samples of other events"},
		{"perf-go.txt", foreign.PerfScript, "cpu-clock:uhH", 2, "go/build.(*importReader).readByte", 1,
			profile.StageUser, 2, 0, 0, ""},
		{"perf-nameless.txt", foreign.PerfScript, "cpu-clock", 5, "_Z5alphav", 1, profile.StageUser, 2, 3, 0, ""},
		{"folded-vertx.txt", foreign.Folded, "samples", 27, "copy_user_generic_string", 3, "socket/syscall", 15, 25, 25, ""},
		{"go-devirt.pprof", foreign.Pprof, "cpu", 739, "", 0, profile.StageUser, 739, 0, 0, ""},
	} {
		p := read(t, c.file)
		if p.Format != string(c.format) || p.Event != c.event || p.Samples != c.samples {
			t.Errorf("%s: %q, event %q, %d samples", c.file, p.Format, p.Event, p.Samples)
		}
		if got := samplesOf(p, c.leaf); got != c.own {
			t.Errorf("%s: %d samples in %s, want %d", c.file, got, c.leaf, c.own)
		}
		if s := p.StageRow(c.stage); s == nil || s.Samples != c.ofStage {
			t.Errorf("%s: %q is %+v, want %d", c.file, c.stage, s, c.ofStage)
		}
		if p.Kernel != c.kernel || p.Kernel-p.Unresolved != c.named {
			t.Errorf("%s: %d samples in the kernel, %d without a name, want %d and %d named", c.file, p.Kernel, p.Unresolved,
				c.kernel, c.named)
		}
		if all := strings.Join(p.Warnings, " "); !strings.Contains(all, c.warning) || c.warning == "" && all != "" {
			t.Errorf("%s: warnings %q, want %q", c.file, all, c.warning)
		}
	}
}

// TestPprofOfGo reads a profile that Go's own profiler wrote.
func TestPprofOfGo(t *testing.T) {
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil {
		t.Fatal(err)
	}
	for range 4_000 { // a tenth of a second or more of processor time, of which the profiler sees every 10 ms
		spin()
	}
	pprof.StopCPUProfile()
	p, err := foreign.Read(&b, "go")
	if err != nil {
		t.Fatal(err)
	}
	if p.Format != string(foreign.Pprof) || p.Samples == 0 || p.BusySeconds == 0 {
		t.Errorf("format %q, %d samples, %v s", p.Format, p.Samples, p.BusySeconds)
	}
	found := false
	for _, f := range p.Functions {
		found = found || strings.HasPrefix(f.Name, "runtime.") || strings.Contains(f.Name, "foreign_test.")
	}
	if !found {
		t.Errorf("no function of Go's among %d of %s", len(p.Functions), runtime.Version())
	}
}

var sunk uint64

func spin() {
	for i := range uint64(1 << 16) {
		sunk += i * i
	}
}

// TestRoundTrips writes what it read, and reads it again: own samples and shares stay.
func TestRoundTrips(t *testing.T) {
	for _, name := range []string{"perf-cpu-clock.txt", "pmcstat-iperf3.txt"} {
		p := read(t, name)
		for form, write := range map[string]func(*bytes.Buffer) error{
			"pprof":  func(b *bytes.Buffer) error { return export.Pprof(b, p, 0) },
			"folded": func(b *bytes.Buffer) error { return export.Folded(b, p) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			again, err := foreign.Read(&b, form)
			if err != nil {
				t.Fatalf("%s as %s: %v", name, form, err)
			}
			if again.Samples != p.Busy {
				t.Errorf("%s as %s: %d samples, had %d busy ones", name, form, again.Samples, p.Busy)
			}
			for _, f := range p.Functions {
				if got := samplesOf(again, strings.ReplaceAll(f.Name, " ", "_")); form == "pprof" && got != f.Samples {
					t.Errorf("%s as %s: %s has %d samples, had %d", name, form, f.Name, got, f.Samples)
				}
			}
		}
	}
}

// TestRefused checks that what is no profile is refused with the reason.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "not a profile"},
		"prose":    {"This is a sentence.\nAnd another.\n", "not a profile"},
		"perfdata": {"PERFILE2\x00\x00", "give the output of perf script"},
		"gzip":     {"\x1f\x8b\x08garbage", "not a profile"},
		"headless": {"@ cycles [0 samples]\n", "no sample"},
	} {
		_, err := foreign.Read(strings.NewReader(c.text), name)
		if !errors.Is(err, foreign.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRead checks that no input makes a parser fail otherwise than with an error, and that the
// tables of what it accepts add up.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 4 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 2000)]) // long ones take their time to be made small
	}
	if b, err := os.ReadFile("testdata/go-devirt.pprof"); err != nil {
		f.Fatal(err)
	} else {
		f.Add(b)
	}
	f.Add([]byte("a;b;c 3\nswapper;do_idle;tcp_v4_rcv_[k] 2.5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := foreign.Read(bytes.NewReader(b), "fuzz")
		if err != nil {
			return
		}
		var stages, functions, stacks uint64
		for _, r := range p.Stages {
			stages += r.Samples
		}
		for _, r := range p.Functions {
			functions += r.Samples
		}
		for _, s := range p.Stacks {
			stacks += s.Samples
		}
		if p.Busy < 1<<52 && (stages != p.Busy || functions != p.Busy || stacks != p.Busy || p.Busy > p.Samples) {
			t.Errorf("%d busy of %d; stages have %d, functions %d, stacks %d", p.Busy, p.Samples, stages, functions, stacks)
		}
	})
}
