// Package progress shows the user the progress of a command.
//
// # Model
//
// A [Line] has steps, which remain, and one status, which the next step or status replaces. On a
// terminal the status is rewritten in place. A log receives only steps. A program that reads the
// output receives both, distinguished by [StatusMark].
//
// # Limits
//
// Every rune counts as one column.
package progress
