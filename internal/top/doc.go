// Package top shows one host as it works: a screen that is drawn anew with each reading, or tables
// and a document for scripts.
//
// # Model
//
// A [Meter] turns readings of package sample into rates (Reading). A [State] is all that
// the screen depends on; it changes by a reading, a key, a verdict, a journal, and by nothing else.
// [State.Lines] lays it out for a width and a height, and knows no terminal: a [Line] is text with
// a [Look]. [Run] joins the two to a terminal; it alone knows bubbletea.
//
// Four things go on by themselves: readings, verdicts (loop.Watch), keys, drawing. Readings wait
// for none of the others: those that the screen is too slow for are dropped from its queue, the
// oldest first.
//
// # Units
//
// Bits, packets and events per second; shares of one processor's time. Short numbers have decimal
// prefixes.
//
// # Sources
//
// Packages sample, loop and journal, and host for the counters of one driver.
//
// # Limits
//
// Whatever a host calls its things is shown inert: of a name only characters of one column are
// left, which no terminal obeys. What is drawn for more than 4096 columns or lines is cut.
package top
