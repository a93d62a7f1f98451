package cli_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/traffic/lease"
)

// The program itself is the command "linerate" of the scripts, which run it as a user does. The
// processes that linerate starts (guard, hosts of a world) are this test binary too.
func TestMain(m *testing.M) {
	guest.Init() // does nothing, except in a guest that a test has booted
	// Most scripts wait: for the windows of measurements, for ports, for deadlines.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"linerate":   func() { os.Exit(cli.MainOverSimulatedPath()) },
		"await-port": awaitPort,
	})
}

// TestScripts runs the scripts. A script that needs more than Go begins with a line for each thing,
// as in "[!netns] skip": the name of a testenv.Thing is a condition that holds where the run
// provides the thing. $PORT1 to $PORT8 are ports in a row that no other test has, not even one of
// another checkout.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("LINERATE_UPDATE") != "",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// hold-lease takes the right to load this host, until the script ends.
			"hold-lease": func(ts *testscript.TestScript, _ bool, _ []string) {
				release, err := (&lease.Lease{Name: ts.Getenv(cli.TestLease)}).Take()
				ts.Check(err)
				ts.Defer(release)
			},
			// valid-lines KIND FILE...: every line of --json-lines is valid with its document, and the
			// last one is of the kind.
			"valid-lines": validLines,
		},
		Condition: func(name string) (bool, error) {
			if thing := testenv.Thing(name); slices.Contains(testenv.Things(), thing) {
				return testenv.Provided(thing), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("LINERATE_STATE", e.WorkDir+"/state/linerate") // root would use the host's own
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", os.Getenv("GORACE")) // options of the race detector, which dev/race sets
			const ports = 8
			first := testenv.FreePorts(scriptTB{t, e}, ports)
			e.Setenv(cli.TestLease, "linerate/test-"+strconv.Itoa(first))
			for i := range ports {
				e.Setenv("PORT"+strconv.Itoa(i+1), strconv.Itoa(first+i))
			}
			return nil
		},
	})
}

// scriptTB is a test whose end is that of a script: all scripts together would keep nearly every
// port of a process.
type scriptTB struct {
	testing.TB
	script *testscript.Env
}

// Cleanup runs f when the script ends.
func (s scriptTB) Cleanup(f func()) { s.script.Defer(f) }

// validLines runs the validator as a program of its own, because it reads its schemas at the start
// of every process that links it: that would double the CPU time of the scripts.
func validLines(ts *testscript.TestScript, _ bool, args []string) {
	run := []string{"run", "../../dev/valid", args[0]}
	for _, name := range args[1:] {
		run = append(run, ts.MkAbs(name))
	}
	if out, err := exec.Command("go", run...).CombinedOutput(); err != nil {
		ts.Fatalf("%v\n%s", err, out)
	}
}

// awaitPort returns when a program listens at the address in os.Args[1]; the deadline of the script
// bounds the wait.
func awaitPort() {
	for {
		c, err := net.Dial("tcp", os.Args[1])
		if err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
