// Package clitest is for tests alone: pages that are generated from a tree of commands, and their
// comparison with what is there.
//
// # Model
//
// A test makes a page and calls [Generated]; run with -update, which `make gen` does, it writes the
// page instead.
//
// # Units
//
// None.
//
// # Sources
//
// Package cobra for the help that a user sees.
//
// # Limits
//
// Hidden commands, help and completion are not on the page.
package clitest
