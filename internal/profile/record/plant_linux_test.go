package record_test

import (
	"bufio"
	"encoding/binary"
	"errors"
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
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/perf"
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

// duty is the processor time of planted threads, in the kernel and outside of it.
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
	p.cmd.Env = append(os.Environ(), plantedShare+"="+strconv.FormatFloat(share, 'g', -1, 64),
		"GOMAXPROCS="+strconv.Itoa(runtime.NumCPU()+2))
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

// finish ends the program and returns what its threads did between two moments of CLOCK_MONOTONIC.
func (p *planted) finish(b *testing.B, from, to uint64) duty {
	if _, err := fmt.Fprintln(p.in, from, to); err != nil {
		b.Fatal(err)
	}
	var d duty
	if _, err := fmt.Fscan(p.out, &d.kernel, &d.user); err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return d
}

// plant keeps one thread for each CPU busy: it runs a program of BPF in the kernel for the given
// share of its processor time and computes for the rest. It ends at a line on standard input that
// has two moments, and prints both sums between them in nanoseconds.
func plant(share float64) error {
	var stop atomic.Bool
	sums, errs := make(chan []turn), make(chan error)
	for range runtime.NumCPU() {
		go func() {
			turns, err := plantThread(share, &stop)
			sums <- turns
			errs <- err
		}()
	}
	fmt.Println("running")
	var from, to uint64
	_, err := fmt.Scan(&from, &to)
	stop.Store(true)
	var all duty
	for range runtime.NumCPU() {
		for _, t := range <-sums {
			all.kernel += t.kernel.within(t.began, t.mid, from, to)
			all.user += t.user.within(t.mid, t.ended, from, to)
		}
		err = errors.Join(err, <-errs)
	}
	fmt.Println(int64(all.kernel), int64(all.user))
	return err
}

// turn is one round of a planted thread: moments, and processor time between them.
type turn struct {
	began, mid, ended uint64
	kernel, user      spent
}

type spent time.Duration

// within returns the part of a time that falls between two moments, as if it were spread evenly.
func (s spent) within(began, ended, from, to uint64) time.Duration {
	first, last := max(began, from), min(ended, to)
	if first >= last {
		return 0
	}
	return time.Duration(float64(s) * float64(last-first) / float64(ended-began))
}

func plantThread(share float64, stop *atomic.Bool) (turns []turn, err error) {
	runtime.LockOSThread()
	inKernel, err := newKernelLoop()
	if err != nil {
		return nil, err
	}
	now := func() time.Duration {
		t, _ := sys.ThreadTime(sys.ThreadID())
		return t
	}
	x := uint64(1)
	for !stop.Load() {
		one := turn{began: perf.Now()}
		began := now()
		if err := inKernel.run(); err != nil {
			return nil, err
		}
		mid := now()
		one.mid, one.kernel = perf.Now(), spent(mid-began)
		// Reading the clock is a system call: often enough to stop in time, and no more.
		rest := time.Duration(float64(mid-began) * (1 - share) / share)
		for now()-mid < rest {
			for range 100_000 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
		}
		one.ended, one.user = perf.Now(), spent(now()-mid)
		turns = append(turns, one)
	}
	if x == 0 {
		return nil, errors.New("what was computed is used")
	}
	return turns, nil
}

// plantedLoop is the name of the program of BPF. The kernel puts bpf_prog_ and a number in front.
const plantedLoop = "planted_loop"

// kernelLoop computes inside the kernel, in one function: a socket filter that the kernel runs on
// request, over a packet that is not looked at. Its time is that of its function but for the entry
// of the system call, which makes the truth sharper than reading zeros: that is a third loops over
// pages.
type kernelLoop struct{ fd uint32 }

func newKernelLoop() (kernelLoop, error) {
	var code []byte
	emit := func(op, registers uint8, off int16, imm int32) {
		code = binary.NativeEndian.AppendUint16(append(code, op, registers), uint16(off))
		code = binary.NativeEndian.AppendUint32(code, uint32(imm))
	}
	emit(0xb7, 0, 0, 1)    // r0 = 1
	emit(0xb7, 1, 0, 2000) // r1 = 2000
	for range 8 {
		emit(0xbf, 0x02, 0, 0) // r2 = r0
		emit(0x67, 2, 0, 13)   // r2 <<= 13
		emit(0xaf, 0x20, 0, 0) // r0 ^= r2
	}
	emit(0x07, 1, 0, -1)         // r1 -= 1
	emit(0x55, 1, -(3*8 + 2), 0) // if r1 != 0, again
	emit(0xb7, 0, 0, 0)          // r0 = 0
	emit(0x95, 0, 0, 0)          // return
	license := []byte("GPL\x00")
	attr := struct {
		kind, count   uint32
		code, license uint64
		level, size   uint32
		log           uint64
		version       uint32
		flags         uint32
		name          [16]byte
	}{kind: 1, count: uint32(len(code) / 8), code: uint64(uintptr(unsafe.Pointer(&code[0]))),
		license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	copy(attr.name[:15], plantedLoop)
	for {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errno == unix.EAGAIN {
			continue
		}
		runtime.KeepAlive(code)
		runtime.KeepAlive(license)
		if errno != 0 {
			return kernelLoop{}, fmt.Errorf("load the planted loop: %w", errno)
		}
		return kernelLoop{uint32(fd)}, nil
	}
}

// run stays in the kernel for about a millisecond.
func (k kernelLoop) run() error {
	packet := make([]byte, 64)
	attr := struct {
		fd, result      uint32
		in, out         uint32
		data, returned  uint64
		repeat, took    uint32
		ctxIn, ctxOut   uint32
		ctx, ctxWritten uint64
	}{fd: k.fd, in: uint32(len(packet)), data: uint64(uintptr(unsafe.Pointer(&packet[0]))), repeat: 50}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(packet)
	if errno != 0 && errno != unix.EINTR {
		return fmt.Errorf("run the planted loop: %w", errno)
	}
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
