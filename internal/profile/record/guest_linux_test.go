package record_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/perf"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/record"
)

// askedVariable makes this test binary print what the kernel answers to a profiler: "works",
// "hidden" or "refused", then what a user would see. "once" samples for a moment; "each" answers
// each line of the standard input, without samples.
const askedVariable = "LINERATE_TEST_ASKED"

func asked(how string) {
	if how == "once" {
		p, err := record.Run(context.Background(), record.Options{Duration: 100 * time.Millisecond, Event: "cpu-clock",
			Rate: 99})
		if err == nil {
			record.Exact(context.Background(), p, 10*time.Millisecond, false)
			fmt.Println("works", strings.Join(p.Warnings, "; "))
			return
		}
		fmt.Println(word(err), err)
		return
	}
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		switch got := perf.Probe(perf.CPUClock(), 0); got.Answer {
		case perf.Works:
			fmt.Println(word(listed()))
		case perf.NotPermitted:
			fmt.Println("refused", got.Reason)
		default:
			fmt.Println("failed", got.Answer, got.Reason)
		}
	}
}

// word is the kind of an answer.
func word(err error) string {
	var refused *record.RefusedError
	switch {
	case err == nil:
		return "works"
	case errors.Is(err, profile.ErrHidden):
		return "hidden"
	case errors.As(err, &refused) && errors.Is(err, fs.ErrPermission) && refused.Hint() != "":
		return "refused"
	}
	return "failed"
}

// listed reads the beginning of the kernel's symbols, which shows whether addresses are hidden.
func listed() error {
	file, err := os.Open("/proc/kallsyms")
	if err != nil {
		return err
	}
	defer file.Close()
	var head strings.Builder
	for s := bufio.NewScanner(file); s.Scan() && head.Len() < 1<<14; {
		head.WriteString(s.Text() + "\n")
	}
	_, err = profile.ReadSymbols(strings.NewReader(head.String()))
	return err
}

// command starts this binary as a user.
func command(t *testing.T, how string, attributes *syscall.SysProcAttr) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env, c.SysProcAttr, c.Stderr = append(os.Environ(), askedVariable+"="+how), attributes, os.Stderr
	return c
}

// ask samples as a user and returns the first word of the answer, and the rest.
func ask(t *testing.T, attributes *syscall.SysProcAttr) (word, rest string) {
	t.Helper()
	out, err := command(t, "once", attributes).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	word, rest, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return word, rest
}

// asker starts a user who is asked again and again.
func asker(t *testing.T, attributes *syscall.SysProcAttr) func() (word, rest string) {
	t.Helper()
	c := command(t, "each", attributes)
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
	t.Cleanup(func() { in.Close(); c.Wait() })
	lines := bufio.NewReader(out)
	return func() (word, rest string) {
		if _, err := fmt.Fprintln(in, "?"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		word, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
		return word, rest
	}
}

func write(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// TestGuestWho asks Debian's kernel under every value of the settings that restrict profilers, as
// root, as an ordinary user and as root of a user namespace, and under lockdown: the answer is the
// right one of three, and names the setting.
func TestGuestWho(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	ordinary := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	contained := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}}
	users := map[string]func() (word, rest string){"root": asker(t, nil), "ordinary": asker(t, ordinary),
		"container": asker(t, contained)}
	for paranoid := range 5 {
		write(t, "/proc/sys/kernel/perf_event_paranoid", fmt.Sprint(paranoid))
		for kptr := range 3 {
			write(t, "/proc/sys/kernel/kptr_restrict", fmt.Sprint(kptr))
			want := map[string]string{"root": "works", "ordinary": "refused", "container": "refused"}
			if kptr == 2 {
				want["root"] = "hidden" // from everyone
			}
			if paranoid == 0 {
				want["ordinary"], want["container"] = "hidden", "hidden"
				if kptr == 0 {
					want["ordinary"], want["container"] = "works", "works"
				}
			}
			for who, user := range users {
				word, rest := user()
				if word != want[who] {
					t.Errorf("paranoid %d, kptr_restrict %d, %s: %s %s, want %s", paranoid, kptr, who, word, rest, want[who])
				}
				if word == "refused" && !strings.Contains(rest, fmt.Sprintf("kernel.perf_event_paranoid is %d", paranoid)) {
					t.Errorf("paranoid %d, %s: the refusal does not name the setting: %s", paranoid, who, rest)
				}
			}
		}
	}
	// The same with samples, once for each answer.
	for _, c := range []struct {
		paranoid, kptr string
		attributes     *syscall.SysProcAttr
		want           string
	}{
		{"3", "1", nil, "works"}, {"3", "2", nil, "hidden"}, {"3", "0", ordinary, "refused"}, {"0", "0", contained, "works"},
	} {
		write(t, "/proc/sys/kernel/perf_event_paranoid", c.paranoid)
		write(t, "/proc/sys/kernel/kptr_restrict", c.kptr)
		if word, rest := ask(t, c.attributes); word != c.want {
			t.Errorf("paranoid %s, kptr_restrict %s: %s %s, want %s", c.paranoid, c.kptr, word, rest, c.want)
		} else {
			t.Logf("note: paranoid %s, kptr_restrict %s: %s %s", c.paranoid, c.kptr, word, rest)
		}
	}
	write(t, "/proc/sys/kernel/kptr_restrict", "0")
	if err := syscall.Mount("securityfs", "/sys/kernel/security", "securityfs", 0, ""); err != nil &&
		!errors.Is(err, syscall.EBUSY) {
		t.Fatal(err)
	}
	for _, level := range []string{"integrity", "confidentiality"} {
		write(t, "/sys/kernel/security/lockdown", level)
		if word, rest := ask(t, nil); word != "works" {
			t.Errorf("lockdown %s: %s %s", level, word, rest)
		} else {
			t.Logf("note: lockdown %s: works; %s", level, rest)
		}
	}
}
