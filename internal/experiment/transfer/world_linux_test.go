package transfer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// TestMain is the first process of the guest, and the tests.
func TestMain(m *testing.M) {
	guesttest.MainIn(m, guest.Options{Counted: true, MemoryBytes: 512 << 20,
		Cards: []guest.Card{{Model: "e1000", Wire: 1}, {Model: "e1000-82545em", Wire: 1}},
		// crc32c_generic is a soft dependency (modprobe.d(5)), which module files do not name.
		Modules: []string{"crc32c_generic", "af_packet", "e1000", "nfs", "nfsv3", "nfsv4", "nfsd", "ifb", "sch_tbf",
			"sch_netem", "sch_ingress", "cls_matchall", "act_mirred"},
		Programs: []string{"ip", "tc", "ethtool"}})
}

const (
	clientIP = "10.9.0.2"
	serverIP = "10.9.0.1"
)

// server is the kernel's NFS server in a network namespace, with a card of its own.
type server struct {
	t    *testing.T
	do   chan func()
	card string // of the server; the client's is near
	near string
	most int64
}

// card returns the name of a card, once the namespace of an earlier test has given it back.
func card(t *testing.T, i int) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		devices, err := filepath.Glob("/sys/class/net/*/address")
		must(t, err)
		for _, d := range devices {
			if b, err := os.ReadFile(d); err == nil && strings.TrimSpace(string(b)) == guest.CardAddress(i) {
				return filepath.Base(filepath.Dir(d))
			}
		}
	}
	t.Fatalf("no card %d", i)
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sh(t *testing.T, line string) string {
	t.Helper()
	w := strings.Fields(line)
	out, err := exec.Command(w[0], w[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(out)
}

// reset gives a card back as after a power cycle. QEMU's e1000 keeps its count of missed packets
// else, and the driver adds it up again at each reading (docs/design/0004-guests-for-tests.md).
func reset(t *testing.T, i int) string {
	t.Helper()
	name := card(t, i)
	device, err := filepath.EvalSymlinks(filepath.Join("/sys/class/net", name, "device"))
	must(t, err)
	driver, err := filepath.EvalSymlinks(filepath.Join(device, "driver"))
	must(t, err)
	must(t, put(filepath.Join(driver, "unbind"), filepath.Base(device)))
	must(t, put(filepath.Join(device, "reset"), "1"))
	must(t, put(filepath.Join(driver, "bind"), filepath.Base(device)))
	return card(t, i)
}

// newServer starts the server: nfsd's caches are filled as exportfs and mountd would. It grants
// transfers up to most bytes.
func newServer(t *testing.T, most int64) *server {
	t.Helper()
	s := &server{t: t, do: make(chan func()), card: reset(t, 0), near: reset(t, 1), most: most}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		ready <- unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_FS | unix.CLONE_NEWNS)
		for f := range s.do {
			f()
		}
	}()
	must(t, <-ready)
	tid := make(chan int)
	s.do <- func() { tid <- unix.Gettid() }
	sh(t, fmt.Sprintf("ip link set %s netns %d", s.card, <-tid))
	s.in("ip link set lo up", "ip link set "+s.card+" up", "ip addr add "+serverIP+"/24 dev "+s.card)
	sh(t, "ip link set "+s.near+" up")
	sh(t, "ip addr replace "+clientIP+"/24 dev "+s.near)
	done := make(chan error)
	s.do <- func() { done <- s.export() }
	must(t, <-done)
	t.Cleanup(func() {
		s.call(func() error {
			return errors.Join(put("/proc/fs/nfsd/threads", "0"), unix.Unmount("/proc/fs/nfsd", 0))
		})
		close(s.do) // the thread ends, and the namespace gives the card back
	})
	return s
}

func (s *server) in(lines ...string) {
	s.t.Helper()
	for _, l := range lines {
		done := make(chan string)
		s.do <- func() {
			w := strings.Fields(l)
			out, err := exec.Command(w[0], w[1:]...).CombinedOutput()
			if err != nil {
				done <- fmt.Sprintf("%s: %v: %s", l, err, out)
				return
			}
			done <- ""
		}
		if e := <-done; e != "" {
			s.t.Fatal(e)
		}
	}
}

// graceTime is the shortest that nfsd takes (nfsv4gracetime).
const graceTime = 10 * time.Second

const expiry = "2147483647"

func put(name, line string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (s *server) export() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := os.MkdirAll("/export", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("none", "/export", "tmpfs", 0, ""); err != nil {
		return err
	}
	if err := unix.Mount("nfsd", "/proc/fs/nfsd", "nfsd", 0, ""); err != nil {
		return err
	}
	rpc := "/proc/thread-self/net/rpc/"
	const flags = 0x2000 | 0x400 | 0x2 | 0x10 // fsid, no subtree check, any port, asynchronous
	for _, x := range [][2]string{
		{"/proc/fs/nfsd/nfsv4gracetime", "10"}, {"/proc/fs/nfsd/nfsv4leasetime", "10"},
		{"/proc/fs/nfsd/max_block_size", strconv.FormatInt(s.most, 10)}, // the kernel's own choice follows the memory
		{"/proc/fs/nfsd/versions", "-3 +4 +4.1 +4.2"},
		{"/proc/fs/nfsd/portlist", "tcp 2049"},
		{"/proc/fs/nfsd/threads", "4"},
		{rpc + "auth.unix.ip/channel", "nfsd " + clientIP + " " + expiry + " client"},
		{rpc + "nfsd.export/channel", fmt.Sprintf("client /export %s %d 65534 65534 0", expiry, flags)},
		{rpc + "nfsd.fh/channel", `client 1 \x00000000 ` + expiry + " /export"},
	} {
		if err := put(x[0], x[1]); err != nil {
			return err
		}
	}
	// Until then clients may only reclaim what they had open. Idle time costs a counted guest nothing.
	time.Sleep(graceTime + time.Second)
	return nil
}

// call runs f on the server's thread.
func (s *server) call(f func() error) {
	s.t.Helper()
	done := make(chan error)
	s.do <- func() { done <- f() }
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
}

// left returns the servers that the kernel's client knows: none, when nothing is mounted.
func left(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/fs/nfsfs/servers")
	must(t, err)
	_, rest, _ := strings.Cut(string(b), "\n") // the heading
	return rest
}

// unmounted waits until nothing is mounted: the end of a namespace is not awaited by anybody.
func unmounted(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); left(t) != ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("still mounted: %s", left(t))
			return
		}
	}
}

// files returns the names in the export.
func (s *server) files() (names []string) {
	s.t.Helper()
	s.call(func() error {
		entries, err := os.ReadDir("/export")
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return err
	})
	return names
}
