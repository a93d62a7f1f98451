// Package progress tells people what a command is doing while it works.
//
// # Model
//
// A [Line] has steps, which stay, and one status, which the next word replaces. On a terminal the
// status rewrites itself; in a log there are steps alone; a program that reads gets both, parted by
// [StatusMark].
//
// # Limits
//
// Every rune counts as one column.
package progress
