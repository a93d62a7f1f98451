package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/base/testenv"
)

// TestSocket checks the owner and the mode of the socket, and that Serve never replaces another
// file.
func TestSocket(t *testing.T) {
	start := func(socket string) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return Serve(ctx, Config{Socket: socket, Version: "v"}, func(string) { cancel() })
	}
	t.Run("mode", func(t *testing.T) {
		defer syscall.Umask(syscall.Umask(0)) // the most permissive umask
		socket := socketIn(t)
		serving(t, Config{Socket: socket, Version: "v", Group: fmt.Sprint(os.Getegid())})
		for path, want := range map[string]fs.FileMode{
			socket: fs.ModeSocket | 0o660, filepath.Dir(socket): fs.ModeDir | 0o755, socket + ".lock": 0o600,
		} {
			if info, err := os.Lstat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: mode %v, want %v, %v", path, info.Mode(), want, err)
			}
		}
		alone := socketIn(t)
		serving(t, Config{Socket: alone, Version: "v"})
		if info, err := os.Lstat(alone); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("without a group: %v, %v", info.Mode(), err)
		}
	})
	t.Run("dead", func(t *testing.T) {
		socket := socketIn(t)
		if err := os.Mkdir(filepath.Dir(socket), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := start(socket); !errors.Is(err, ErrInTheWay) || !strings.Contains(err.Error(), "another process answers") {
			t.Errorf("while another process answers: %v", err)
		}
		l.Close()
		if err := start(socket); err != nil {
			t.Errorf("when no process answers: %v", err)
		}
	})
	t.Run("two servers", func(t *testing.T) {
		socket := socketIn(t)
		serving(t, Config{Socket: socket, Version: "v"})
		if err := start(socket); !errors.Is(err, durable.ErrLocked) {
			t.Errorf("the second: %v", err)
		}
		dial(t, socket)
	})
	t.Run("in the way", func(t *testing.T) {
		socket := socketIn(t)
		dir := filepath.Dir(socket)
		for what, make := range map[string]func() error{
			"file":            func() error { return os.WriteFile(socket, []byte("precious"), 0o644) },
			"link":            func() error { return os.Symlink("/etc/passwd", socket) },
			"directory":       func() error { return os.Mkdir(socket, 0o755) },
			"dir is a link":   func() error { return errors.Join(os.Remove(dir), os.Symlink(t.TempDir(), dir)) },
			"dir is a file":   func() error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o644)) },
			"open to a group": func() error { return os.Chmod(dir, 0o775) },
			"open to all":     func() error { return os.Chmod(dir, 0o757) },
			"no parent":       func() error { return os.Remove(filepath.Join(dir)) },
		} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := make(); err != nil {
				t.Fatal(err)
			}
			place := socket
			if what == "no parent" {
				place = filepath.Join(dir, "deeper", "agent.sock")
			}
			before, _ := os.Lstat(place)
			err := start(place)
			if !errors.Is(err, ErrInTheWay) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", what, err)
			}
			if after, _ := os.Lstat(place); before != nil && !os.SameFile(before, after) {
				t.Errorf("%s was replaced", what)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		if err := start(filepath.Join(t.TempDir(), strings.Repeat("x", 120))); err == nil ||
			!strings.Contains(err.Error(), "at most 107") {
			t.Errorf("a long name: %v", err)
		}
		var none *GroupError
		if err := Serve(t.Context(), Config{Socket: socket, Group: "no-such-group"}, nil); !errors.As(err, &none) ||
			!strings.Contains(none.Hint(), "groupadd") {
			t.Errorf("no such group: %v", err)
		}
	})
	t.Run("of systemd", func(t *testing.T) {
		// The protocol needs file 3 and this process's id, so it takes a process.
		dir := stateWith(t)
		socket := socketIn(t)
		if err := os.Mkdir(filepath.Dir(socket), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" -test.run=^TestHelperServe$`,
			os.Args[0])
		cmd.Env = append(os.Environ(), "AGENT_TEST_SERVE="+dir)
		cmd.ExtraFiles = []*os.File{f}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		f.Close()
		c := dial(t, socket)
		if list, err := c.Runs(t.Context(), runs.Tunes); err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // ended by the signal
	})
}

// TestHelperServe is the process of a server that gets its socket from systemd.
func TestHelperServe(t *testing.T) {
	if dir := os.Getenv("AGENT_TEST_SERVE"); dir != "" {
		t.Fatal(Serve(context.Background(),
			Config{Local: Local{Dir: dir}, Version: "v", Socket: "/nonexistent/agent.sock"}, nil))
	}
}

// TestHelperAsk is a client that runs as another user.
func TestHelperAsk(t *testing.T) {
	if socket := os.Getenv("AGENT_TEST_ASK"); socket != "" {
		c, err := connect(t.Context(), socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
}

// TestOtherUsers checks that members of the group get answers; that the mode of the file keeps
// other users out; and that the server refuses them even if the mode does not.
func TestOtherUsers(t *testing.T) {
	testenv.Need(t, testenv.NetNS) // which root alone has; TestMay checks the rule without it
	if os.Geteuid() != 0 {
		testenv.Missing(t, testenv.NetNS, "only root may run a process as another user")
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "ask")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "run", "agent.sock")
	turned := make(chan string, 10)
	serving(t, Config{Socket: socket, Version: "v", Group: "4242", Log: func(line string) { turned <- line }})
	ask := func(uid, gid uint32, groups ...uint32) error {
		cmd := exec.Command(program, "-test.run=^TestHelperAsk$")
		cmd.Env = []string{"AGENT_TEST_ASK=" + socket}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid, Groups: groups}}
		return cmd.Run()
	}
	many := make([]uint32, 100)
	for i := range many {
		many[i] = uint32(5000 + i)
	}
	many[99] = 4242
	if err := ask(65534, 4242); err != nil {
		t.Errorf("with the group: %v", err)
	}
	if err := ask(65534, 65534, 7, 4242); err != nil {
		t.Errorf("with it among others: %v", err)
	}
	if err := ask(65534, 65534, many...); err != nil {
		t.Errorf("with it among many: %v", err)
	}
	if err := ask(65534, 65534, 7); err == nil || len(turned) != 0 {
		t.Errorf("without it: %v, %d turned away", err, len(turned))
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := ask(65534, 65534, 7); err == nil {
		t.Error("without it, at a socket that is open to all: answered")
	}
	if line := <-turned; !strings.Contains(line, "user 65534") {
		t.Errorf("log %q", line)
	}
}

func TestMay(t *testing.T) {
	for _, c := range []struct {
		who   peer
		group int64
		want  bool
	}{
		{peer{0, []uint32{0}}, -1, true},
		{peer{1000, []uint32{1000}}, -1, true},
		{peer{1001, []uint32{1001, 5}}, -1, false},
		{peer{1001, []uint32{1001, 5}}, 5, true},
		{peer{1001, []uint32{5}}, 5, true},
		{peer{1001, nil}, 0, false},
		{peer{1001, []uint32{1<<32 - 1}}, -1, false},
	} {
		if got := (&server{uid: 1000, group: c.group}).may(c.who); got != c.want {
			t.Errorf("%+v, group %d: %v", c.who, c.group, got)
		}
	}
}
