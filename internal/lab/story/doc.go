// Package story tells the run of a practice world to somebody who watches: what `linerate demo`
// prints.
//
// # Model
//
// A [Teller] takes the events of package lab one at a time. What is decided becomes a line, what is
// under way the status line.
//
// # Limits
//
// It knows no terminal and no colour: who wants the verdict in full gives a function that prints
// it.
package story
