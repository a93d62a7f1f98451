package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
)

// patience guards against a guest that hangs. QEMU may have a fifth of a processor.
const patience = 10 * time.Minute

// The test binary is the first process of its guest, and a program in it.
func TestMain(m *testing.M) {
	Init()
	if len(os.Args) > 1 && os.Args[1] == "act" {
		act(os.Args[2])
	}
	os.Exit(m.Run())
}

// act is what the guest runs.
func act(what string) {
	switch what {
	case "speak":
		_, _ = os.Stdout.WriteString("out ")
		_, _ = os.Stderr.WriteString("err " + os.Getenv("WORD") + "\n")
		os.Exit(7)
	case "shout":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte{0, 255}, 1<<20))
	case "crash":
		// Only in a guest: this crashes the kernel.
		if Inside() {
			_ = os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)
		}
	case "wire":
		if err := wire(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "hang":
		_, _ = os.Stdout.WriteString("hanging\n")
		select {}
	}
	os.Exit(0)
}

// wire sends a frame from the second card and prints the addresses of the cards that receive it.
func wire() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	// The EtherType for local experiments (IEEE 802).
	const etherType = 0x88b5
	sockets := make(map[string]int)
	for _, i := range all {
		if len(i.HardwareAddr) == 0 {
			continue
		}
		if out, err := exec.Command("ip", "link", "set", i.Name, "up").CombinedOutput(); err != nil {
			return fmt.Errorf("%s up: %w: %s", i.Name, err, out)
		}
		order := etherType>>8 | etherType&0xff<<8 // network byte order
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, order)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(order), Ifindex: i.Index})
		}
		if err == nil {
			err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", i.Name, err)
		}
		sockets[i.HardwareAddr.String()] = fd
	}
	frame := append(bytes.Repeat([]byte{0xff}, 12), etherType>>8, etherType&0xff)
	frame = append(frame, make([]byte, 64)...)
	heard, deadline := false, time.Now().Add(patience)
	for !heard {
		// A card whose link is not up yet drops the frame, which is therefore sent again.
		if _, err := unix.Write(sockets[CardAddress(1)], frame); err != nil {
			return err
		}
		for a, fd := range sockets {
			if _, err := unix.Read(fd, make([]byte, 2048)); err == nil && a != CardAddress(1) {
				heard = true
				fmt.Println("heard by", a)
			}
		}
		if time.Now().After(deadline) {
			return errors.New("no card received the frame")
		}
	}
	return nil
}

// booted boots a guest, or ends the test.
func booted(t *testing.T, o Options) *Guest {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started := time.Now()
	g, err := Boot(ctx, o)
	if err != nil {
		testenv.Missing(t, testenv.Guest, err)
	}
	t.Logf("Linux %s up in %.1f s", g.Release, time.Since(started).Seconds())
	return g
}

// One guest serves all subtests, because a boot takes seconds.
func TestGuest(t *testing.T) {
	testenv.Need(t, testenv.Guest)
	g := booted(t, Options{
		Cards: []Card{{Model: "e1000"}, {Model: "e1000", Wire: 1}, {Model: "e1000e", Wire: 1},
			{Model: "e1000", Wire: 2}},
		Modules: []string{"e1000 debug=0", "e1000e", "af_packet"}, Programs: []string{"ip"},
	})
	t.Run("output and status", func(t *testing.T) {
		var out bytes.Buffer
		status, err := g.Run(t.Context(), Command{Args: []string{"/init", "act", "speak"}, Env: []string{"WORD=word"}},
			&out, nil)
		if err != nil || status != 7 || out.String() != "out err word\n" {
			t.Errorf("status %d, %v, output %q", status, err, &out)
		}
	})
	// However long an answer takes, the guest looked at its clock between the request and the answer.
	t.Run("a second is a second", func(t *testing.T) {
		look := func() (asked time.Time, up time.Duration, answered time.Time) {
			asked = time.Now()
			text, err := g.ReadFile(t.Context(), "/proc/uptime")
			if err != nil {
				t.Fatal(err)
			}
			if up, err = time.ParseDuration(strings.Fields(string(text))[0] + "s"); err != nil {
				t.Fatal(err)
			}
			return asked, up, time.Now()
		}
		asked, up, answered := look()
		time.Sleep(time.Second)
		askedAgain, later, answeredAgain := look()
		least, most := askedAgain.Sub(answered), answeredAgain.Sub(asked)
		const step = 10 * time.Millisecond // of the file
		if took := later - up; took < least-least/100-2*step || took > most+most/100+2*step {
			t.Errorf("the guest counts %v, and it took %v to %v", took, least, most)
		}
	})
	t.Run("two outputs apart", func(t *testing.T) {
		var out, complaints bytes.Buffer
		status, err := g.Run(t.Context(), Command{Args: []string{"/init", "act", "speak"}, Env: []string{"WORD=word"}},
			&out, &complaints)
		if err != nil || status != 7 || out.String() != "out " || complaints.String() != "err word\n" {
			t.Errorf("status %d, %v, output %q, complaints %q", status, err, &out, &complaints)
		}
	})
	t.Run("much output of any bytes", func(t *testing.T) {
		var out bytes.Buffer
		status, err := g.Run(t.Context(), Command{Args: []string{"/init", "act", "shout"}}, &out, nil)
		if err != nil || status != 0 || out.Len() != 2<<20 || !bytes.HasPrefix(out.Bytes(), []byte{0, 255, 0, 255}) {
			t.Errorf("status %d, %v, %d bytes", status, err, out.Len())
		}
	})
	t.Run("a program of the machine, with its libraries, sees the card", func(t *testing.T) {
		var out bytes.Buffer
		status, err := g.Run(t.Context(), Command{Args: []string{"ip", "-o", "link"}}, &out, nil)
		if err != nil || status != 0 || !strings.Contains(out.String(), "52:54:00:00:00:01") {
			t.Errorf("status %d, %v, output %q", status, err, &out)
		}
	})
	t.Run("cards of one wire hear each other and no other card", func(t *testing.T) {
		var out bytes.Buffer
		status, err := g.Run(t.Context(), Command{Args: []string{"/init", "act", "wire"}}, &out, nil)
		if err != nil || status != 0 || out.String() != "heard by 52:54:00:00:00:03\n" {
			t.Errorf("status %d, %v, output %q", status, err, &out)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		_, err := g.Run(t.Context(), Command{Args: []string{"no-such-program"}}, &bytes.Buffer{}, nil)
		if err == nil || !strings.Contains(err.Error(), "run no-such-program in guest: ") {
			t.Error(err)
		}
	})
	t.Run("files come back", func(t *testing.T) {
		b, err := g.ReadFile(t.Context(), "/sys/class/net/eth0/address")
		if err != nil || string(b) != "52:54:00:00:00:01\n" {
			t.Errorf("%q, %v", b, err)
		}
		if b, err = g.ReadFile(t.Context(), "/proc/sys/kernel/hostname"); err != nil || string(b) != "guest\n" {
			t.Errorf("%q, %v", b, err)
		}
		if _, err = g.ReadFile(t.Context(), "/nowhere"); err == nil ||
			!strings.Contains(err.Error(), "read /nowhere in guest: ") {
			t.Error(err)
		}
	})
	t.Run("a program that hangs is killed with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		status, err := g.Run(ctx, Command{Args: []string{"/init", "act", "hang"}}, onWrite(cancel), nil)
		if !errors.Is(err, context.Canceled) || status != 128+9 {
			t.Errorf("status %d, %v", status, err)
		}
		if _, err := g.Run(ctx, Command{Args: []string{"/init", "act", "speak"}}, &bytes.Buffer{}, nil); !errors.Is(err,
			context.Canceled) {
			t.Errorf("run under a context that has ended: %v", err)
		}
	})
	t.Run("a guest that crashes shows its last lines", func(t *testing.T) {
		_, err := g.Run(t.Context(), Command{Args: []string{"/init", "act", "crash"}}, &bytes.Buffer{}, nil)
		if err == nil || !strings.Contains(err.Error(), "Kernel panic - not syncing: sysrq triggered crash") {
			t.Error(err)
		}
	})
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// onWrite is called at each write.
type onWrite func()

func (f onWrite) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

// Impossible options end the boot before QEMU starts, with an error that names the cause.
func TestBootRefuses(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{CPUs: 2, Counted: true}, "want one"},
		{Options{Cards: []Card{{Model: "virtio-net-pci", Queues: 2, Wire: 1}}}, "on wire 1"},
	} {
		if _, err := Boot(t.Context(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v; want %s", err, tc.want)
		}
	}
}

// A missing module and a missing program end the boot before QEMU starts, and the error names them.
func TestBootNamesWhatIsMissing(t *testing.T) {
	testenv.Need(t, testenv.Guest)
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{Modules: []string{"no-such-module x=1"}}, "module no_such_module"},
		{Options{Programs: []string{"no-such-program"}}, "program no-such-program"},
	} {
		if _, err := Boot(t.Context(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v; want %s", err, tc.want)
		}
	}
}
