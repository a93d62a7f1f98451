// Package spelling finds the name that was meant by a mistyped one, and the flag whose value is
// missing.
//
// # Model
//
// Two names are as far apart as letters must be inserted, deleted, changed or swapped with their
// neighbour. A name is near when a third of the typed letters explains the difference, and two at
// most: between words of four letters, two changes make almost any other word.
//
// # Units
//
// Letters.
//
// # Sources
//
// Optimal string alignment, a restricted Damerau-Levenshtein distance: swaps are common typing
// errors. Cobra allows two letters whatever the length, without swaps.
//
// # Limits
//
// The time grows with the product of the lengths.
package spelling
