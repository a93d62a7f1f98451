package nameserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// standIn is the variable of a process in the place of a name server.
const standIn = "LINERATE_TEST_NAMESERVER"

// TestStandIn is that process: it has a bound UDP socket and ends after ten minutes at the latest.
// Alone it does nothing.
func TestStandIn(t *testing.T) {
	if os.Getenv(standIn) == "" {
		return
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	time.Sleep(10 * time.Minute)
}

// A server that is a unit of systemd is restarted by systemctl alone. That one is a script here: it
// ends the server and starts it again, as systemd does, or refuses.
func TestRestartOfUnit(t *testing.T) {
	dir := t.TempDir()
	config, program := filepath.Join(dir, "unbound.conf"), filepath.Join(dir, "unbound")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestStandIn$", "--", "-c", config)
	cmd.Env = append(os.Environ(), standIn+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // else it stays as a zombie
	pids := []int{cmd.Process.Pid}
	t.Cleanup(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // all but the last have ended
		}
	})
	s := found(t, config)
	s.Unit = "unbound.service"
	systemctl := func(script string) {
		if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	asked := filepath.Join(dir, "asked")
	systemctl(fmt.Sprintf(`echo "$@" >> %q
kill -TERM %d
while kill -0 %d 2> /dev/null; do sleep 0.02; done
%s=1 %q '-test.run=^TestStandIn$' -- -c %q < /dev/null > /dev/null 2>&1 &
`, asked, s.PID, s.PID, standIn, program, config))
	if err := s.restart(t.Context(), Unbound, config, s.Args); err != nil {
		t.Fatal(err)
	}
	again := found(t, config)
	pids = append(pids, again.PID)
	text, err := os.ReadFile(asked)
	if err != nil || string(text) != "restart unbound.service\n" || again.PID == s.PID {
		t.Errorf("systemctl was asked %q, %v; process %d, then %d", text, err, s.PID, again.PID)
	}
	again.Unit = s.Unit
	systemctl("echo 'Failed to restart unbound.service: Access denied'; echo more; exit 4\n")
	err = again.restart(t.Context(), Unbound, config, again.Args)
	if err == nil || !strings.Contains(err.Error(), "restart unbound.service: exit status 4: Failed to restart") ||
		strings.Contains(err.Error(), "more") {
		t.Errorf("a refusal of systemctl is %v", err)
	}
	if now := found(t, config); now.PID != again.PID {
		t.Errorf("after a refused restart the process is %d, want %d", now.PID, again.PID)
	}
}

// found returns the server of a configuration file when it has its sockets.
func found(t *testing.T, config string) Server {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s, err := Find(Unbound, config)
		if err == nil && s.ready(Unbound) {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("the server is not there: %v", err)
		}
	}
}
