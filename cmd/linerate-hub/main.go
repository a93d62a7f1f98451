// Command linerate-hub keeps the history of a host and shows it: what it carried, lost and spent, and what was changed when. See `linerate-hub --help` and
// package internal/hub.
package main

import (
	"os"

	"github.com/linerate/linerate/internal/hub"
)

func main() { os.Exit(hub.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
