// Package tally names the counters of a packet filter's rules, so that a history can keep them.
//
// # Model
//
// [Of] returns a [Count] for each counter of a rule, of an element of a set or map, and of a name.
// What a counter is of is in its name: the comment of the rule or element, or the counter's own
// name. Rules may share a comment, so a count also says what its rule compares. Of more counters
// than asked for, those with names come first, and then those that counted most.
//
// # Units
//
// Packets and bytes since the program that owns the rules set them.
//
// # Sources
//
// Package ruleset.
//
// # Limits
//
// A rule that moves into a chain of its own compares less there, so a rewrite begins some counts
// anew. Two counters without a difference are one count, with the sum.
package tally
