package peer_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/wire"
)

// sshHost is a real OpenSSH server on loopback, which the test's ssh knows as "farhost". Its knobs
// are files.
type sshHost struct {
	dir     string   // of the far program's knobs, journal and pid
	command []string // far program
}

// startSSH runs sshd with keys and a configuration of its own, and puts an ssh in PATH that uses a
// configuration of its own too.
func startSSH(t *testing.T) *sshHost {
	t.Helper()
	testenv.Need(t, testenv.SSHD)
	sshd := "/usr/sbin/sshd"
	for _, program := range []string{sshd, "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, testenv.SSHD, err)
		}
	}
	// As root, sshd requires its directory for privilege separation, which the service normally
	// creates at boot.
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, key := range []string{"hostkey", "userkey"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
			at(key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	port := testenv.FreePorts(t, 1)
	hostKey := read(t, at("hostkey.pub"))
	write(t, at("authorized"), read(t, at("userkey.pub")))
	write(t, at("known_hosts"), fmt.Sprintf("[127.0.0.1]:%d %s", port, hostKey))
	write(t, at("sshd_config"), fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %s
AuthorizedKeysFile %s
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
`, port, at("hostkey"), at("authorized")))
	write(t, at("ssh_config"), fmt.Sprintf(`Host farhost
  HostName 127.0.0.1
  Port %d
  User %s
  IdentityFile %s
  IdentitiesOnly yes
  UserKnownHostsFile %s
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  BatchMode yes
`, port, me.Username, at("userkey"), at("known_hosts")))
	if err := os.Mkdir(at("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	write(t, at("bin/ssh"), fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", real, at("ssh_config")))
	if err := os.Chmod(at("bin/ssh"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", at("bin")+string(os.PathListSeparator)+os.Getenv("PATH"))

	var log strings.Builder
	server := exec.Command(sshd, "-D", "-e", "-f", at("sshd_config"))
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Logf("sshd said:\n%s", log.String())
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("sshd does not listen: %v", err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &sshHost{dir: farDir(t)}
	h.command = []string{"env", farEnv + "=" + h.dir, allowEnv + "=1", exe}
	write(t, h.knob(), string(original))
	return h
}

func (h *sshHost) knob() string { return filepath.Join(h.dir, "net.ipv4.tcp_rmem") }

// awaitKnob waits until the far host's knob has a value.
func (h *sshHost) awaitKnob(t *testing.T, want knob.Value) {
	t.Helper()
	var got string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got = strings.TrimSpace(read(t, h.knob())); got == string(want) {
			return
		}
	}
	log, _ := os.ReadFile(filepath.Join(stateIn(h.dir), "guard.log"))
	t.Fatalf("the knob is %q, want %q; the guard said: %s", got, want, log)
}

func TestOverRealSSH(t *testing.T) {
	h := startSSH(t)
	c, err := peer.Connect(t.Context(), "ssh://farhost", peer.ConnectOptions{SSHCommand: h.command})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Info().Host != "farside" {
		t.Errorf("got %+v", c.Info())
	}
	if _, err := c.Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
	got, err := c.Run(t.Context(), short, nil)
	if err != nil || got.Bytes == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	set := func(c *peer.Client) {
		t.Helper()
		if _, err := c.Apply(t.Context(), "to be lost", knob.Setting{Knob: rmem, Value: larger}); err != nil {
			t.Fatal(err)
		}
		if v, err := c.Read(t.Context(), rmem); err != nil || v != larger {
			t.Fatalf("got %q, %v", v, err)
		}
	}
	set(c)
	c.Close()
	h.awaitKnob(t, original)

	// A commit is confirmed over a connection to the port of ssh's far end.
	c, err = peer.Connect(t.Context(), "ssh://farhost", peer.ConnectOptions{SSHCommand: h.command})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ids, err := c.Apply(t.Context(), "to stay", knob.Setting{Knob: rmem, Value: larger})
	if err == nil {
		err = c.Commit(t.Context(), ids...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Undo(t.Context(), ids...); err != nil {
		t.Error(err)
	}
	h.awaitKnob(t, original)
	c.Close()

	// The far program is killed during a trial: its guard undoes the trial.
	c, err = peer.Connect(t.Context(), "ssh://farhost", peer.ConnectOptions{SSHCommand: h.command})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set(c)
	pid, err := strconv.Atoi(read(t, filepath.Join(h.dir, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	killed, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if _, err := c.Read(t.Context(), rmem); !errors.Is(err, wire.ErrPeerGone) {
		t.Errorf("after the kill: %v", err)
	}
	h.awaitKnob(t, original)
}

func TestSSHExplainsWhyNot(t *testing.T) {
	h := startSSH(t)
	for name, c := range map[string]struct {
		target  string
		command []string
		kind    error
		text    string
	}{
		"no such program": {"ssh://farhost", []string{"/no/such/linerate", "serve"}, wire.ErrNotLinerate,
			"/no/such/linerate"},
		"other program": {"ssh://farhost", []string{"echo", "it's", "$HOME"}, wire.ErrNotLinerate,
			"without linerate's greeting"},
		"not permitted": {"ssh://no-such-user@farhost", h.command, wire.ErrUnreachable, "Permission denied"},
		"unknown host":  {"ssh://no..such.host", h.command, wire.ErrUnreachable, "resolve hostname"},
		"closed port": {fmt.Sprintf("ssh://127.0.0.1:%d", testenv.FreePorts(t, 1)), h.command,
			wire.ErrUnreachable, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := peer.Connect(t.Context(), c.target, peer.ConnectOptions{SSHCommand: c.command})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.kind, c.text)
			}
			var e *wire.Error
			if !errors.As(err, &e) || e.Hint() == "" {
				t.Errorf("no advice with %v", err)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
