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
