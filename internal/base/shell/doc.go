// Package shell writes words for a POSIX shell.
//
// # Model
//
// A shell takes a word in single quotes as it is. A word of letters, digits and signs that no shell
// expands needs none, and is easier to read.
//
// # Units
//
// None.
//
// # Sources
//
// Shell Command Language of POSIX.1-2024, 2.2 Quoting.
//
// # Limits
//
// A word in front of a command that has an equals sign is an assignment, however it is quoted.
package shell
