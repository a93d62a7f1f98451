// Command linerate finds what keeps a host from its line rate, changes one thing at a time, keeps
// only what is proven to help, and can always undo it. See `linerate --help` and package
// internal/cli.
package main

import (
	"os"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/lab/guest"
)

func main() {
	guest.Init() // does something only in the first process of a guest, which is this program
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
