// Package cli is the command line: one file per command, and each command is flags, one call, one
// document.
//
// # Model
//
// Main runs one command and returns its exit status. An app holds the streams and the environment,
// so that tests can run commands inside their own process. Every command that has a result prints
// exactly one document: text by default, JSON with --json. Progress goes to standard error and
// never mixes with a document.
//
// All commands follow the same rules:
//   - standard output carries the result and nothing else; standard error carries progress,
//     warnings and errors;
//   - an error is one sentence `linerate: operation subject: cause`, and, where the user can act, a
//     second line that begins with "try:"; with --json it is one JSON object instead;
//   - a status line that rewrites itself is used only when standard error is a terminal;
//     `--progress lines` asks for plain lines;
//   - colour only on a terminal and never with NO_COLOR set (no-color.org).
//
// # Exit status
//
// 0 ok · 1 failed · 2 usage · 3 partial result · 4 finding at or above --fail-on · 5 rolled back ·
// 10 not permitted · 11 locked by another linerate · 12 peer unreachable · 130 interrupted. The
// table is in exit.go and in every command's help.
//
// # Units
//
// Flags take what users type: times as Go durations (10s, 1m30s), rates and sizes as package unit
// reads them (1Gb/s, 256KiB), shares as ratios from 0 to 1. Documents carry the unit in every key,
// text shows it behind every number.
//
// # Sources
//
// POSIX.1, Base Definitions, chapter 12 (utility conventions) with GNU long options; no-color.org;
// the XDG Base Directory Specification and the Filesystem Hierarchy Standard for where the journal
// lives. 130 is what shells report for a command that SIGINT ended (128 + 2). Help and
// docs/reference come from one tree of commands, and a test compares them.
//
// # Limits
//
// Commands that change or watch a host work on Linux; on other systems they fail with one sentence.
package cli
