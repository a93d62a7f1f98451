package lab

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWatch stops a process that watches, as a paused machine does. On a busy machine it names the
// other programs instead.
func TestWatch(t *testing.T) {
	c := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"linerate", "watch"}, Stderr: os.Stderr}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if _, err := said.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for state := ""; state != "T"; time.Sleep(time.Millisecond) { // bounded by the test's own limit
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		state = rest[:1]
	}
	time.Sleep(3 * stopped)
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	line, err := said.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	const stands, others, host = "this machine stopped the programs for ", "other programs used ", "the hypervisor took "
	if !strings.HasPrefix(line, stands) && !strings.HasPrefix(line, others) && !strings.HasPrefix(line, host) {
		t.Errorf("it says %q", line)
	}
}
