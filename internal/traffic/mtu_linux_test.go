package traffic

import (
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// inNetNS runs f on a thread of its own inside the network namespace fd, a fresh one for −1, and
// returns its descriptor.
func inNetNS(t *testing.T, fd int, f func() error) int {
	t.Helper()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the runtime then discards the thread
		if fd >= 0 {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
		} else if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY, 0) // kept over exec, for ip(8)
		}
		if err == nil {
			err = f()
		}
	}()
	<-done
	if err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	return fd
}

// commands runs one command per line.
func commands(text string) error {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", line, err, out)
			}
		}
	}
	return nil
}

// TestClampedByAMiddlebox has the entrance of the far host lower the segment size in one
// direction's handshake, as routers in front of tunnels do.
func TestClampedByAMiddlebox(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	for _, tool := range []string{"ip", "nft"} {
		testenv.Program(t, tool)
	}
	for _, c := range []struct {
		hook     string
		up, down bool
	}{{"", false, false}, {"prerouting", true, false}, {"postrouting", false, true}} {
		t.Run("clamp "+c.hook, func(t *testing.T) {
			far := inNetNS(t, -1, func() error { return nil })
			defer unix.Close(far)
			near := inNetNS(t, -1, func() error {
				return commands(fmt.Sprintf(`
					ip link add v0 type veth peer name v1 netns /proc/self/fd/%d
					ip addr add 10.9.0.1/24 dev v0
					ip link set v0 up`, far))
			})
			defer unix.Close(near)
			var listener net.Listener
			inNetNS(t, far, func() error {
				err := commands("ip addr add 10.9.0.2/24 dev v1\nip link set v1 up")
				if err == nil && c.hook != "" {
					err = commands("nft add table ip clamp\nnft add chain ip clamp c { type filter hook " + c.hook +
						" priority 0 ; }\n" +
						"nft add rule ip clamp c tcp flags & syn == syn tcp option maxseg size set 1200")
				}
				if err == nil {
					listener, err = net.Listen("tcp", "10.9.0.2:0")
				}
				return err
			})
			defer listener.Close()
			accepted := make(chan net.Conn, 1)
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					conn = nil
				}
				accepted <- conn
			}()
			var conn net.Conn
			inNetNS(t, near, func() (err error) {
				conn, err = net.Dial("tcp", listener.Addr().String())
				return err
			})
			ends := []tcpinfo.TCPInfo{infoOf(t, conn), infoOf(t, <-accepted)}
			if up, down := tcpinfo.Clamped(ends[0], ends[1]), tcpinfo.Clamped(ends[1], ends[0]); up != c.up ||
				down != c.down {
				t.Errorf("clamped up %v, down %v: %+v", up, down, ends)
			}
			if ends[0].OfferedMSS() != 1460 || ends[1].OfferedMSS() != 1460 {
				t.Errorf("offers of %d and %d bytes", ends[0].OfferedMSS(), ends[1].OfferedMSS())
			}
		})
	}
}

// infoOf returns what the kernel reports about one end, and closes it.
func infoOf(t *testing.T, conn net.Conn) tcpinfo.TCPInfo {
	t.Helper()
	if conn == nil {
		t.Fatal("no connection")
	}
	c, err := engine.Adopt(conn.(*net.TCPConn), engine.ConnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	info, err := c.Info()
	if err != nil {
		t.Fatal(err)
	}
	var f tcpinfo.Flow
	f.Add(info, false)
	f.Open()
	f.Add(info, true)
	f.Shut(c.Buffers())
	return f.Report(true)
}
