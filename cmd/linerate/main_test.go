package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/lab/guest"
)

// asProgram is the environment variable that makes the test binary the program itself.
const asProgram = "LINERATE_TEST_AS_PROGRAM"

// TestMain boots and serves guests by the test binary; the program under test in them is a real
// build.
func TestMain(m *testing.M) {
	guest.InitContainer()
	guest.Init()
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(append([]string{"linerate"}, os.Args[1:]...), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestProgramStarts(t *testing.T) {
	for argument, want := range map[string]string{"version": "linerate ", "--help": "measure"} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self, argument)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), want) || stderr.Len() > 0 {
			t.Errorf("linerate %s: %v\n%s%s", argument, err, out, &stderr)
		}
	}
}
