package cli_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/lab/guest"
)

// The program itself is the command "linerate" of the scripts: they are typed as a user types them,
// and the processes that linerate starts (guard, hosts of a world) are this test binary too.
func TestMain(m *testing.M) {
	guest.Init() // does nothing, except in a guest that a test has booted
	testscript.Main(m, map[string]func(){
		"linerate":   func() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) },
		"await-port": awaitPort,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("LINERATE_UPDATE") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("LINERATE_STATE", e.WorkDir+"/state/linerate") // root would use the host's own
			e.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}

// awaitPort returns when somebody listens at the address in os.Args[1]; it gives up when the
// script's own deadline ends it.
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
