package record_test

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
)

// used returns the disk blocks of a directory's files.
func used(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) == "reserve" {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			return err
		}
		bytes += st.Blocks * 512
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// fill appends a workload second by second.
func fill(t testing.TB, s *record.Store, w *workload, from time.Time, seconds int) {
	t.Helper()
	for i := range seconds {
		at := from.Add(time.Duration(i) * time.Second)
		if err := s.Append(w.next(at)); err != nil {
			t.Fatal(err)
		}
		if i%60 == 59 {
			s.Maintain(at)
		}
	}
}

// asks are queries of a page and a dashboard over 48 hours: span, step, query.
var asks = []struct {
	name  string
	span  time.Duration
	step  time.Duration
	query string
}{
	{"in and out of one interface, 48 h", 48 * time.Hour, 100 * time.Second,
		`rate(linerate_interface_receive_bytes_total{interface="eth3"}[2m]) * 8`},
	{"in and out of one interface, 48 h", 48 * time.Hour, 100 * time.Second,
		`rate(linerate_interface_transmit_bytes_total{interface="eth3"}[2m]) * 8`},
	{"in of all, 48 h, 500 points", 48 * time.Hour, 346 * time.Second,
		`rate(linerate_interface_receive_bytes_total[346s]) * 8`},
	{"out of all, 48 h, 500 points", 48 * time.Hour, 346 * time.Second,
		`rate(linerate_interface_transmit_bytes_total[346s]) * 8`},
	{"in of all, 48 h, 200 points", 48 * time.Hour, 864 * time.Second,
		`rate(linerate_interface_receive_bytes_total[15m]) * 8`},
	{"processors by mode, 48 h", 48 * time.Hour, 120 * time.Second,
		`sum by (mode) (rate(linerate_cpu_seconds_total[2m]))`},
	{"errors of one, 48 h", 48 * time.Hour, 120 * time.Second,
		`sum by (kind) (rate(linerate_interface_errors_total{interface="eth3"}[2m]))`},
	{"drops of one by place, 48 h", 48 * time.Hour, 120 * time.Second,
		`sum by (place) (rate(linerate_interface_drops_total{interface="eth3"}[2m]))`},
	{"interrupts of the queues of one, 48 h", 48 * time.Hour, 120 * time.Second,
		`sum(rate(linerate_queue_interrupts_total{interface="eth0"}[2m]))`},
	{"retransmits, 48 h", 48 * time.Hour, 120 * time.Second, `rate(linerate_tcp_retransmits_total[2m])`},
	{"up of all, 48 h", 48 * time.Hour, 346 * time.Second, `linerate_interface_up`},
	{"in of one, 1 h at 1 s", time.Hour, time.Second,
		`rate(linerate_interface_receive_bytes_total{interface="eth3"}[5s]) * 8`},
	{"in of all, 1 h at 5 s", time.Hour, 5 * time.Second, `rate(linerate_interface_receive_bytes_total[10s]) * 8`},
	{"processors, 1 h at 5 s", time.Hour, 5 * time.Second, `sum by (mode) (rate(linerate_cpu_seconds_total[10s]))`},
	{"busiest five, 6 h", 6 * time.Hour, 30 * time.Second, `topk(5, rate(linerate_interface_receive_bytes_total[1m]))`},
	{"busiest five, 48 h", 48 * time.Hour, 120 * time.Second,
		`topk(5, rate(linerate_interface_receive_bytes_total[2m]))`},
	{"dashboard, 6 h", 6 * time.Hour, 15 * time.Second,
		`rate(linerate_interface_receive_bytes_total{interface=~"eth1.*"}[1m]) * 8`},
	{"dashboard, 48 h", 48 * time.Hour, 120 * time.Second,
		`rate(linerate_interface_transmit_bytes_total{interface="eth7"}[2m15s]) * 8`},
	{"drops of all by place, 24 h", 24 * time.Hour, time.Minute,
		`sum by (interface, place) (increase(linerate_interface_drops_total[1m]))`},
}

// BenchmarkFortyEightHours shows the cost of two days of history: 40 interfaces, 64 queues, 8 CPUs,
// a sample a second. With LINERATE_HISTORY_DIR it leaves the history there, and uses it the next
// time.
func BenchmarkFortyEightHours(b *testing.B) {
	const seconds = 48 * 3600
	dir := os.Getenv("LINERATE_HISTORY_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	_, err := os.Stat(filepath.Join(dir, "series"))
	began := time.Now()
	s, openErr := record.Open(record.Options{Dir: dir, Host: "near"})
	if openErr != nil {
		b.Fatal(openErr)
	}
	defer s.Close()
	opened := time.Since(began)
	w := newWorkload(40, 64, 8)
	if err != nil {
		fill(b, s, w, noon, seconds)
		fmt.Printf("appended in %v\n", time.Since(began))
	}
	bytes := used(b, dir)
	fmt.Printf("%d series, %.3f bytes a sample on disk (%d MB), opened in %v\n", len(w.points),
		float64(bytes)/float64(seconds*len(w.points)), bytes/1e6, opened)
	end := noon.Add(seconds * time.Second)
	for b.Loop() {
		var all, allCPU []time.Duration
		for _, ask := range asks {
			var took, cpu []time.Duration
			for i := range 10 {
				began, beganCPU := time.Now(), processorTime()
				last := end.Add(-time.Duration(i) * time.Second)
				if _, err := s.Range(b.Context(), ask.query, last.Add(-ask.span), last, ask.step); err != nil {
					b.Fatal(ask.query, err)
				}
				took, cpu = append(took, time.Since(began)), append(cpu, processorTime()-beganCPU)
			}
			fmt.Printf("%-40s first %6.1f ms  median %6.1f ms, of processors %6.1f ms\n", ask.name,
				took[0].Seconds()*1e3, quantile(took, 0.5).Seconds()*1e3, quantile(cpu, 0.5).Seconds()*1e3)
			all, allCPU = append(all, took...), append(allCPU, cpu...)
		}
		fmt.Printf("all: median %v p95 %v worst %v\n", quantile(all, 0.5), quantile(all, 0.95), quantile(all, 1))
		fmt.Printf("of processors: median %v p95 %v worst %v\n", quantile(allCPU, 0.5), quantile(allCPU, 0.95),
			quantile(allCPU, 1))
	}
}

// processorTime returns the CPU time of this process: unlike the duration of a query, a busy
// machine does not change it.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkMemory shows the memory for two hours of 2 000 series with queries.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		s, err := record.Open(record.Options{Dir: b.TempDir(), Host: "near"})
		if err != nil {
			b.Fatal(err)
		}
		w := newWorkload(46, 80, 8)
		for i := range 120 {
			fill(b, s, w, noon.Add(time.Duration(i)*time.Minute), 60)
			end := noon.Add(time.Duration(i+1) * time.Minute)
			for _, ask := range asks[i%len(asks):][:1] {
				if _, err := s.Range(b.Context(), ask.query, end.Add(-min(ask.span, 2*time.Hour)), end,
					ask.step); err != nil {
					b.Fatal(err)
				}
			}
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			b.Fatal(err)
		}
		fmt.Println(len(w.points), "series")
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "Rss") {
				fmt.Print(line)
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func quantile(of []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
