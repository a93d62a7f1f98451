// Package text shows the documents of package report on a terminal: one screen of plain words each.
//
// # Model
//
// One function for each document, named like it: [Inspect], [Measure], [Tune] and so on. They
// decide the order, what one screen has room for and what is left to --json or --verbose; phrases
// that the page has too come from package words. A printer writes lines and remembers the first
// error; a table lays out its columns and breaks its last one. Every line passes one place that
// takes away what a terminal would obey, because names come from other hosts.
//
// # Units
//
// Rates in decimal bits, memory in binary bytes, local time.
//
// # Sources
//
// ECMA-48 for the colours, of which only the sixteen basic ones, bold and dim are used; NO_COLOR
// (no-color.org), honoured by the caller through [Style].
//
// # Limits
//
// Laid out for 100 columns; every rune counts as one column.
package text
