package record_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
)

const (
	// killRounds is the number of kills; LINERATE_KILL_ROUNDS overrides it.
	killRounds  = 12
	killSeries  = 2000
	killHelper  = "LINERATE_RECORD_HELPER" // the directory: this process is the one that is killed
	diskHelper  = "LINERATE_DISK_HELPER"   // where a small disk is to be mounted: this process has one of its own
	mayForget   = 10                       // seconds
	checkedTail = 700                      // seconds that a start looks at; the whole history is looked at in the end
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(killHelper) != "":
		err = appendUntilKilled(os.Getenv(killHelper), os.Stdout)
	case os.Getenv(diskHelper) != "":
		err = liveOnSmallDisk(os.Getenv(diskHelper))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// history opens the history of a process that a test starts.
func history(dir string, minFreeBytes int64) (*record.Store, error) {
	return record.Open(record.Options{Dir: dir, Host: "near", MinFreeBytes: minFreeBytes,
		Queries: record.Bounds{Time: patience}})
}

// appendUntilKilled opens the history, prints how long that took, checks the last minutes, and
// appends second after second of simulated time as fast as it can, while queries run and blocks are
// cut. It prints each second that it has appended.
func appendUntilKilled(dir string, out io.Writer) error {
	began, beganCPU := time.Now(), processorTime()
	s, err := history(dir, 1<<20)
	if err != nil {
		return err
	}
	opened, openedCPU := time.Since(began), processorTime()-beganCPU
	next := 0
	if newest := s.Status().Newest; !newest.IsZero() {
		next = int(newest.Sub(noon)/time.Second) + 1
	}
	if err := verify(s, max(0, next-checkedTail), next); err != nil {
		return err
	}
	fmt.Fprintln(out, "opened", opened.Microseconds(), openedCPU.Microseconds(), next)
	ss := make([]*sample.Series, killSeries)
	for j := range ss {
		ss[j] = series(tested, strconv.Itoa(j))
	}
	points := make([]sample.Point, killSeries)
	failed := make(chan error, 2)
	var at = make(chan time.Time, 1)
	go func() {
		for now := range at {
			s.Maintain(now)
		}
	}()
	go func() {
		for {
			newest := s.Status().Newest
			if newest.IsZero() {
				continue
			}
			if _, err := s.Matrix(context.Background(), `sum(rate(linerate_test_total[1m]))`,
				newest.Add(-10*time.Minute), newest, 5*time.Second); err != nil {
				failed <- err
				return
			}
		}
	}()
	for i := next; ; i++ {
		for j := range points {
			points[j] = sample.Point{Series: ss[j], Value: valueOf(i, j)}
		}
		now := noon.Add(time.Duration(i) * time.Second)
		if err := s.Append(&sample.Reading{Time: now, Points: points}); err != nil {
			return err
		}
		if st := s.Status(); st.State != record.DiskOK {
			return fmt.Errorf("the disk is %s: %s", st.State, st.Cause)
		}
		fmt.Fprintln(out, i)
		if i%60 == 0 {
			select {
			case at <- now:
			case err := <-failed:
				return err
			default:
			}
		}
	}
}

// verify reads the seconds from one to before another: every series has one sample in each, with
// its value.
func verify(s *record.Store, from, to int) error {
	if from >= to {
		return nil
	}
	q, err := s.Querier(noon.Add(time.Duration(from)*time.Second), noon.Add(time.Duration(to-1)*time.Second))
	if err != nil {
		return err
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", tested.Name))
	found := 0
	var it chunkenc.Iterator
	for set.Next() {
		found++
		j, err := strconv.Atoi(set.At().Labels().Get("series"))
		if err != nil {
			return err
		}
		i := from
		for it = set.At().Iterator(it); it.Next() == chunkenc.ValFloat; i++ {
			t, v := it.At()
			if want := noon.Add(time.Duration(i) * time.Second).UnixMilli(); t != want || v != valueOf(i, j) {
				return fmt.Errorf("series %d: at %d is %v, want %v at %d, second %d of %d to %d", j, t, v,
					valueOf(i, j), want, i, from, to)
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
		if i != to {
			return fmt.Errorf("series %d ends at second %d, want %d", j, i-1, to-1)
		}
	}
	if err := set.Err(); err != nil {
		return err
	}
	if found != killSeries {
		return fmt.Errorf("%d series, want %d", found, killSeries)
	}
	return nil
}

// TestKill kills a process that appends and answers, at random moments. Each start must find all
// but the last seconds, intact.
func TestKill(t *testing.T) {
	testenv.Need(t, testenv.Long)
	rounds := killRounds
	if v := os.Getenv("LINERATE_KILL_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(7, 8))
	said := -1 // the newest second that a process printed
	var opens, processors []time.Duration
	lost := 0
	for round := range rounds {
		open, next, last := killOnce(t, dir, time.Duration(random.IntN(900))*time.Millisecond)
		opens, processors = append(opens, open.took), append(processors, open.processors)
		if next < said+1-mayForget {
			t.Fatalf("round %d: %d seconds were lost, of which %d may be", round, said+1-next, mayForget)
		}
		lost = max(lost, said+1-next)
		if said = last; last < next {
			said = next - 1
		}
	}
	s := open(t, record.Options{Dir: dir, MinFreeBytes: 1 << 20})
	to := int(s.Status().Newest.Sub(noon)/time.Second) + 1
	if to < said+1-mayForget {
		t.Errorf("the history ends at second %d, want %d or a little less", to-1, said)
	}
	for from := 0; from < to; from += 3600 {
		if err := verify(s, from, min(from+3600, to)); err != nil {
			t.Error(err)
		}
	}
	blocks, err := os.ReadDir(dir + "/series")
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(e os.DirEntry) bool { return len(e.Name()) != 26 })
	t.Logf("%d kills, %d s of %d series in %d blocks, most lost %d s, start: median %v, p95 %v, worst %v; of "+
		"processors: %v, %v, %v", rounds, to, killSeries, len(blocks), lost,
		quantile(opens, 0.5), quantile(opens, 0.95), quantile(opens, 1),
		quantile(processors, 0.5), quantile(processors, 0.95), quantile(processors, 1))
}

// opening is the cost of a start.
type opening struct{ took, processors time.Duration }

// killOnce runs the helper, kills it some time after it begins to append, and returns how long
// opening took, which second came next, and the last one that it printed.
func killOnce(t *testing.T, dir string, after time.Duration) (opened opening, next, last int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killHelper+"="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	if !lines.Scan() {
		_ = cmd.Wait()
		t.Fatalf("helper: %s", stderr.String())
	}
	var us, cpu int64
	if _, err := fmt.Sscanf(lines.Text(), "opened %d %d %d", &us, &cpu, &next); err != nil {
		t.Fatalf("%q: %v", lines.Text(), err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	last = next - 1
	for lines.Scan() {
		if n, err := strconv.Atoi(lines.Text()); err == nil { // the last line may be cut
			if n > last {
				last = n
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("helper ended without a signal: %v: %s", err, stderr.String())
	}
	return opening{time.Duration(us) * time.Microsecond, time.Duration(cpu) * time.Microsecond}, next, last
}
