// Package powershell works out the commands that a script of PowerShell runs, as far as its text
// says it, and executes nothing.
//
// # Model
//
// [Expand] goes through a text as PowerShell does. It keeps the values of variables that the text
// assigns: strings, numbers, lists, tables, blocks, and keys of the registry. It puts them in their
// places: in double quotes, in sums, behind Join-Path, -f, -join and -split, as members and items,
// as splatted tables. Loops run over what is known, and once over what is not; a loop over the keys
// below a key runs once, for the key with a star. Functions run for their calls, or once without
// one. Every branch runs. A variable that branches give several values has none behind them.
//
// The result is a [Command] for each command that a reader asked for, with its words as they are
// when it runs. What is not known keeps its spelling; a part of a key that is not known is a star.
//
// # Limits
//
// Conditions, pipelines of objects, classes, modules and .NET are not worked out: what comes from
// them is not known. A text may be a page with a script in it, so that a string ends with its line,
// and nothing is an error. The work is bounded by a number of bytes in proportion to the text.
package powershell
