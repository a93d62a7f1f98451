package record_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// plantedName is the name of the planted program, so that its row is its own.
const plantedName = "planted"

// plantedShare is the variable that makes this test binary the planted program.
const plantedShare = "LINERATE_TEST_PLANTED"

func TestMain(m *testing.M) {
	if text := os.Getenv(plantedShare); text != "" {
		share, err := strconv.ParseFloat(text, 64)
		if err == nil {
			err = plant(share)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if how := os.Getenv(askedVariable); how != "" {
		asked(how)
		return
	}
	guesttest.Main(m)
}

// duty is the processor time of a planted thread, in the kernel and outside of it.
type duty struct{ kernel, user time.Duration }

// planted is the running program.
type planted struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startPlanted(b *testing.B, share float64) *planted {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	name := filepath.Join(b.TempDir(), plantedName)
	if err := os.Symlink(self, name); err != nil {
		b.Fatal(err)
	}
	p := &planted{cmd: exec.Command(name)}
	p.cmd.Env = append(os.Environ(), plantedShare+"="+strconv.FormatFloat(share, 'g', -1, 64), "GOMAXPROCS=2")
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := p.out.ReadString('\n'); err != nil { // it runs
		b.Fatal(err)
	}
	return p
}

func (p *planted) say(b *testing.B, word string) {
	if _, err := fmt.Fprintln(p.in, word); err != nil {
		b.Fatal(err)
	}
}

// finish ends the program and returns what its thread did since "begin".
func (p *planted) finish(b *testing.B) duty {
	p.say(b, "end")
	var d duty
	if _, err := fmt.Fscan(p.out, &d.kernel, &d.user); err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return d
}

// plant keeps one thread busy: it reads zeros for the given share of its processor time and
// computes for the rest. It counts from the first line on standard input to the second, and prints
// both sums in nanoseconds.
func plant(share float64) error {
	runtime.LockOSThread()
	zero, err := os.Open("/dev/zero")
	if err != nil {
		return err
	}
	var lines atomic.Int32
	go func() {
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			if strings.TrimSpace(s.Text()) != "" {
				lines.Add(1)
			}
		}
	}()
	now := func() time.Duration {
		t, _ := sys.ThreadTime(sys.ThreadID())
		return t
	}
	memory := make([]byte, 1<<20)
	var d duty
	x := uint64(1)
	fmt.Println("running")
	for lines.Load() < 2 {
		began := now()
		if _, err := zero.Read(memory); err != nil {
			return err
		}
		mid := now()
		rest := time.Duration(float64(mid-began) * (1 - share) / share)
		for now()-mid < rest {
			for range 20000 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
		}
		if lines.Load() == 1 {
			d.kernel += mid - began
			d.user += now() - mid
		}
	}
	memory[0] = byte(x) // what was computed is used
	fmt.Println(int64(d.kernel), int64(d.user))
	return nil
}

// idle returns the time in which no CPU worked since boot, in seconds, of all CPUs.
func idle(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		b.Fatal(err)
	}
	f := strings.Fields(strings.SplitN(string(text), "\n", 2)[0])
	sum := 0.0
	for _, n := range []int{4, 5, 8} { // idle, waiting for disks, stolen
		v, err := strconv.ParseFloat(f[n], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += v / 100
	}
	return sum
}
