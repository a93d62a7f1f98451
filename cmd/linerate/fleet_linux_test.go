package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// said is what a step of a script must print, as an expression.
type said struct{ step, want string }

// TestFleet types the commands of a fleet on a hub and three hosts in network namespaces, each with
// the agent of root and a node: a change that is kept, one whose harm takes it back, undo, a hub
// and a node killed in the middle of a rollout, and a hub that has lost all rollouts. The programs,
// the kernel and the traffic are real; testdata/fleet.sh is what it types. The effects are factors
// of four, so that a busy machine does not decide; nothing in it waits for a time instead of an
// event. It takes about six minutes, nearly all of it waiting for trials and readings.
func TestFleet(t *testing.T) {
	typeFleet(t, "testdata/fleet.sh", []said{
		{"without a person nothing is signed", `(?m)^status 2$`},
		{"kept", `(?m)^done in wave 100 %: 3 committed$`},
		{"harm", `(?m)^halted: the experiment on host \S+ shows harm: -\d`},
		{"harm", `(?m)^status 5$`},
		{"undo", `(?m)^done in .*: 3 undone$`},
		{"killed hub", `(?m)^halted: the hub has started again$`},
		{"killed hub", `(?m)^too early: status 1$`},
		{"killed hub", `(?m)^done in wave 100 %: 3 committed$`},
		{"a hub that has lost its rollouts", `(?m)^done in .*: 3 undone$`},
		{"distrust", `(?m)^halted: .*the host answers key-unknown`},
	})
}

// TestTwoPeople types changes on hosts that ask for two people: apply --to, sign on a machine
// without a network, and begin. It types what goes wrong as well: one signature, one person twice,
// a key that no host knows, files changed after the signature, expired orders, a hub killed in the
// middle, and a host that leaves in the middle. The kept change is made permanent, and undone.
// testdata/cosign.sh is what it types. It takes about seven minutes, nearly all of it waiting.
func TestTwoPeople(t *testing.T) {
	typeFleet(t, "testdata/cosign.sh", []said{
		{"join", `(?s)(Each change needs 2 signatures.*){3}`},
		{"one signature", `(?m)^halted: .*the host answers too-few-signatures`},
		{"one signature", `(?m)^status 3$`},
		{"one person twice", `ann has signed already\nstatus 1\n`},
		{"one person twice", `(?m)^halted: .*the host answers bad-signature`},
		{"a key that no host knows", `(?m)^halted: .*the host answers key-unknown`},
		{"a plan that was changed", `(?s)(not those of the rollout.*status 1.*){2}`},
		{"orders that were changed", `(?m)^halted: .*the host answers bad-signature`},
		{"expired", `(?s)(make a new plan\nstatus 1.*){2}`},
		{"the hub is killed", `there is one of this name\nstatus 1\n`},
		{"the hub is killed", `(?m)^halted: .*the host answers too-few-signatures`},
		{"the hub is killed", `(?m)^signed by ann\+bob, in again.orders$`},
		{"the hub is killed", `(?m)^done in wave 100 %: 3 committed$`},
		{"permanent", `(?s)3 not-persistable.*\nstatus 3\n.*: 3 persisted\n(.*net.ipv4.tcp_wmem ?= ?4096 131072 4194304\n){3}`},
		{"permanent", `no host reports its change in force that a restart would end\nstatus 1`},
		{"undo needs one", `(?m)^done in .*: 3 undone$`},
		{"undo needs one", `h1/sysctl.d:\n\nh2/sysctl.d:\n\nh3/sysctl.d:$`},
		{"a host leaves", `(?m)^halted: (the experiment on )?host`},
		{"a host leaves", `this host has left the fleet`},
		{"a host leaves", `(?m)^done in .*undone`},
	})
}

// typeFleet runs a script in namespaces of its own and compares what its steps print.
func typeFleet(t *testing.T, script string, want []said) {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Long)
	t.Parallel()
	python := testenv.Program(t, "python3")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hub := hubProgram(t)
	for name, content := range map[string]string{
		"linerate": "#!/bin/sh\n" + asProgram + "=1 exec '" + self + "' \"$@\"\n", "linerate-hub": string(hub.Content),
		"python3": "#!/bin/sh\nexec '" + python + "' \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	traffic, err := os.ReadFile("testdata/traffic.py")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "traffic.py"), traffic, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if script, err = filepath.Abs(script); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", script,
		dir)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	steps := strings.Split(string(out), "\n== ")
	steps[0] = strings.TrimPrefix(steps[0], "== ")
	of := func(name string) string {
		for _, s := range steps {
			if rest, ok := strings.CutPrefix(s, name+"\n"); ok {
				return rest
			}
		}
		t.Errorf("no step %q in\n%s", name, out)
		return ""
	}
	for _, c := range want {
		if text := of(c.step); !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("step %q does not say %q:\n%s", c.step, c.want, text)
		}
	}
}
