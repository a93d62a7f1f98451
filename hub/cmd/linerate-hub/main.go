// Command linerate-hub keeps the history of a host and shows it: what it carried, lost and spent,
// and its changes. See `linerate-hub --help` and package hub/internal/daemon.
package main

import (
	"os"

	"github.com/linerate/linerate/hub/internal/daemon"
)

func main() { os.Exit(daemon.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
