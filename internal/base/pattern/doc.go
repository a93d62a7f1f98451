// Package pattern compiles a regular expression at its first use.
//
// # Model
//
// A reader of foreign text has dozens of expressions, and most commands use none of them. Compiled
// when the program starts, they took 40 % of the processor time of a command such as `version`.
//
// # Units
//
// Places in a text are bytes.
//
// # Sources
//
// Package regexp: its syntax (RE2), and its methods.
//
// # Limits
//
// Neither the compiler of Go nor the start of the program shows that an expression is wrong.
// TestEveryPattern of package internal compiles all of them.
package pattern
