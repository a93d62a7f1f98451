package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

const systemdDir = "../../dist/systemd"

// TestServeUnits checks that systemd accepts the units of serve, with and without the drop-in of
// the guide, that it rates the service as confined, and that the units match the program.
func TestServeUnits(t *testing.T) {
	analyze := testenv.Program(t, "systemd-analyze")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := make(map[string]string)
	for _, name := range []string{"linerate-serve.service", "linerate-serve.socket"} {
		b, err := os.ReadFile(filepath.Join(systemdDir, name))
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(b)
		// The program need not be installed where the test runs.
		there := strings.ReplaceAll(string(b), "/usr/local/bin/linerate", self)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(there), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	service := filepath.Join(dir, "linerate-serve.service")
	verify := func(what string) {
		t.Helper()
		out, err := exec.Command(analyze, "verify", "--man=no", service,
			filepath.Join(dir, "linerate-serve.socket")).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("verify %s: %v\n%s", what, err, out)
		}
	}
	verify("the units")
	// 1.2 is what systemd 252 gives: the network has to be the host's.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=13",
		service).CombinedOutput(); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	for name, want := range map[string]string{
		"linerate-serve.socket": fmt.Sprintf("\nListenStream=%d\n", peer.DefaultPort),
		"linerate-serve.service": "\nExecStart=/usr/local/bin/linerate serve " +
			"--peers=/var/lib/linerate-serve/peers.json --state /var/lib/linerate\n",
	} {
		if !strings.Contains(text[name], want) {
			t.Errorf("%s has no line %q", name, strings.TrimSpace(want))
		}
	}
	page, err := os.ReadFile("../../docs/guide/far-side.md")
	if err != nil {
		t.Fatal(err)
	}
	dropIn := regexp.MustCompile("(?ms)^```ini\n(.*?)^```$").FindSubmatch(page)
	if dropIn == nil {
		t.Fatal("the guide has no drop-in")
	}
	if err := os.Mkdir(service+".d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(service+".d", "override.conf"), dropIn[1], 0o644); err != nil {
		t.Fatal(err)
	}
	verify("the units with the drop-in of the guide")
}

// TestServeUser has systemd make the users of the services, in a root of its own.
func TestServeUser(t *testing.T) {
	sysusers := testenv.Program(t, "systemd-sysusers")
	conf, err := filepath.Abs("../../dist/sysusers.d/linerate.conf")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if out, err := exec.Command(sysusers, "--root="+root, conf).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	group, err := os.ReadFile(filepath.Join(root, "etc/group"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^linerate-serve:.*:/var/lib/linerate-serve:.*/nologin$`).Match(passwd) ||
		!regexp.MustCompile(`(?m)^linerate:`).Match(group) || bytes.Count(passwd, []byte("\n")) != 1 {
		t.Errorf("users:\n%s\ngroups:\n%s", passwd, group)
	}
}

// activated starts a serve that does not open its port, but inherits it, and returns its standard
// error when it has ended after one client.
type activated func(t *testing.T, socket *os.File, port int, peers string) *exec.Cmd

// handOver passes the descriptor as systemd does, with the user of the unit where the test may
// choose one: a user without any right over the socket, which root has opened.
func handOver(t *testing.T, socket *os.File, _ int, peers string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), "sh", "-c",
		`LISTEN_PID=$$ LISTEN_FDS=1 exec "$LINERATE" serve --peers="$PEERS" --listen 127.0.0.1:1`)
	c.ExtraFiles = []*os.File{socket} // descriptor 3
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		for _, name := range []string{filepath.Dir(peers), peers, peers + ".lock"} { // as systemd does
			if err := os.Chown(name, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// handOverBySystemd has systemd-socket-activate open the port and wait for the first connection.
func handOverBySystemd(t *testing.T, socket *os.File, port int, peers string) *exec.Cmd {
	program := testenv.Program(t, "systemd-socket-activate")
	socket.Close()
	return exec.CommandContext(t.Context(), program, "--listen=127.0.0.1:"+strconv.Itoa(port), "-E", "PEERS", "--",
		os.Getenv("LINERATE_TEST_SELF"), "serve", "--peers="+peers)
}

// TestSocketActivation measures over a port that another process has opened: plain tests, and one
// whose window the listening socket must have.
func TestSocketActivation(t *testing.T) {
	for name, start := range map[string]activated{"own": handOver, "systemd": handOverBySystemd} {
		t.Run(name, func(t *testing.T) { activate(t, start) })
	}
}

func activate(t *testing.T, start activated) {
	// Below a directory that every user may pass, for the user of the service.
	dir, err := os.MkdirTemp("/tmp", "linerate-serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	hub := roster.Peer{Name: "hub", Key: wire.NewKey()}
	file := roster.File{FS: durable.OS(), Path: filepath.Join(dir, "keys", "peers.json")}
	if err := file.Edit(t.Context(), func([]roster.Peer) ([]roster.Peer, error) {
		return []roster.Peer{hub}, nil
	}); err != nil {
		t.Fatal(err)
	}
	// A copy, because the directory of the test binary may be closed to that user; its first
	// argument makes it linerate.
	self := filepath.Join(dir, "linerate")
	copyOfSelf(t, self)
	port := testenv.FreePorts(t, 1)
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // which Go would choose, and systemd does not
	l, err := plain.Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // the parent keeps the descriptor in socket
		t.Fatal(err)
	}
	t.Setenv("LINERATE_TEST_SELF", self)
	c := start(t, socket, port, file.Path)
	c.Env = append(os.Environ(), "PEERS="+file.Path, "LINERATE="+self, "LINERATE_STATE="+filepath.Join(dir, "state"))
	var said bytes.Buffer
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = c.Process.Signal(os.Interrupt)
			_, _ = io.Copy(io.Discard, out)
			if err := c.Wait(); err != nil {
				t.Errorf("serve ended with %v:\n%s", err, &said)
			}
		}
	}
	t.Cleanup(end)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	var client *peer.Client
	for client == nil { // systemd-socket-activate has yet to open the port
		if client, err = peer.Connect(t.Context(), addr, peer.ConnectOptions{Key: hub.Key.String()}); err != nil &&
			!strings.Contains(err.Error(), "refused") {
			end()
			t.Fatalf("%v; serve said:\n%s", err, &said)
		}
	}
	defer client.Close()
	for _, spec := range []traffic.Spec{
		{Test: traffic.Stream, Bytes: 1 << 20},
		{Test: traffic.Stream, Bytes: 256 << 10, WindowBytes: 64 << 10, MSSBytes: 1000},
		{Test: traffic.Stream, Bytes: 1 << 20},
	} {
		if _, err := client.Run(t.Context(), spec, nil); err != nil {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	client.Close()
	end()
	if text := said.String(); !strings.Contains(text, ", peer hub) came") || strings.Contains(text, "turned away") ||
		strings.Contains(text, "denied") {
		t.Errorf("serve said:\n%s", text)
	}
	// Read as root, who would not trust the file of that user.
	if uses, err := os.ReadFile(file.Path + ".used"); err != nil || !bytes.Contains(uses, []byte(hub.Key.ID())) {
		t.Errorf("last uses %s, %v", uses, err)
	}
}

// copyOfSelf copies this test binary.
func copyOfSelf(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	into, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(into, from); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
}
