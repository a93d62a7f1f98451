package worldtest_test

import (
	"maps"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/lab/guest"
)

// TestMain lets the binary be linerate, in a guest too.
func TestMain(m *testing.M) {
	guest.Init() // does nothing, except in a guest that a test has booted
	commands := map[string]func(){
		"linerate": func() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) },
	}
	maps.Copy(commands, guestCommands())
	testscript.Main(m, commands)
}
