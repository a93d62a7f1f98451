// Package cli is the command line: one file per command, each no more than flags → one call → one document printed.
//
// # Model
//
// Main runs one command and returns its exit status. An app holds the streams and the environment, so that tests can run
// commands inside their own process. Every command that has a result prints exactly one document: text by default, JSON with
// --json. Progress goes to standard error and never mixes with a document.
//
// The manners of the terminal, stated once:
//   - standard output carries the result and nothing else; standard error carries progress, warnings and errors;
//   - an error is one sentence `linerate: operation subject: cause`, and, where there is something to do, a second line
//     that begins with "try:"; with --json it is one JSON object instead;
//   - a status line that rewrites itself is used only when standard error is a terminal; `--progress lines` asks for plain lines;
//   - colour only on a terminal and never with NO_COLOR set (no-color.org).
//
// # Exit status
//
// 0 ok · 1 failed · 2 usage · 3 partial result · 4 finding at or above --fail-on · 5 rolled back · 10 not permitted ·
// 11 locked by another linerate · 12 peer unreachable · 130 interrupted. The table is in exit.go and in every command's help.
//
// # Limits
//
// Commands that change or watch a host work on Linux; elsewhere they say so in one sentence.
package cli
