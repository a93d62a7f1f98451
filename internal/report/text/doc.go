// Package text shows the documents of package report on a terminal: one screen of plain words each.
//
// # Model
//
// One function for each document, named like it: [Inspect], [Measure], [Tune] and so on. The
// function chooses the order, what fits one screen and what is left to --json or --verbose; phrases
// that the page has too come from package words. A printer writes lines and keeps the first error;
// a table lays out its columns and wraps its last one. On a terminal that is narrower than a table,
// what does not fit follows below each row, behind the names of the columns. Every line passes
// through one function that replaces what a terminal would obey, because names come from other
// hosts.
//
// # Units
//
// Rates in decimal bits, memory in binary bytes, local time.
//
// # Sources
//
// ECMA-48 for the colours (the sixteen basic ones, bold and dim); NO_COLOR (no-color.org), which
// the caller honours through [Style].
//
// # Limits
//
// Laid out for 100 columns, and readable from 40 on; every rune counts as one column.
package text
