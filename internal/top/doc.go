// Package top shows one host as it works: a screen that is drawn anew with each reading, or tables
// and a document for scripts.
//
// # Model
//
// A [Meter] turns readings of package sample into rates: a [Reading] is one interval, a [Document]
// (linerate.top/1) several. A [State] is everything that the screen depends on; only a reading, a
// key, a verdict or a journal changes it. [State.Lines] lays it out for a width and a height,
// without a terminal: a [Line] is text with a [Look]. [Run] connects the two to a terminal, through
// bubbletea.
//
// Four activities run side by side: readings, verdicts (loop.Watch), keys, drawing. Readings wait
// for none of the other three: when the screen is too slow, its queue drops the oldest reading.
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
// Names from a host are shown inert: only characters of one column that no terminal obeys are left.
// The screen is cut at 4096 columns and lines.
package top
