// Package tool runs the programs of a system and returns what they print, or plays what they
// printed on another machine.
//
// # Model
//
// A [Runner] takes a command line and returns an [Output]. [System] starts the program; a [Tape]
// answers from the records in a text and starts nothing. So what reads a system through its
// programs (ifconfig, ipadm, PowerShell) works on a recording in the same way, and is tested with
// what real machines printed.
//
// A program that runs and fails is an *[ExitError]; one that is missing is [ErrNoProgram]. Success
// is not believed by anyone above: some programs print nothing, or print a translated text, and
// exit with 0.
//
// # Units
//
// Output is limited to [MaxOutput] bytes, time to [Patience].
//
// # Sources
//
// environ(7) for the language of the output. A tape is a text file: see [ParseTape].
//
// # Limits
//
// Programs run without a shell, without standard input, and in the language C. Windows programs
// have no such language: callers ask PowerShell for JSON and never read words.
package tool
