// Package visible is the one filter between text from elsewhere and a terminal, a log or a page.
//
// # Model
//
// A rune is [Hidden] when a reader does not see it but a terminal or a browser obeys it: control
// characters (escape sequences begin with one), line and paragraph separators, marks that change
// the direction of text or have no width. [Text] and [Line] replace each by U+FFFD; a byte that is
// no UTF-8 becomes U+FFFD too, because an 8-bit terminal obeys the bytes of C1. A [Writer] does the
// same to everything that passes, so that a message which was formed without this filter is
// harmless as well.
//
// # Units
//
// None.
//
// # Sources
//
// ECMA-48 for control functions and their 8-bit forms; UAX #9 for the marks of direction (property
// Bidi_Control); Trojan Source (CVE-2021-42574) for what they can do; Unicode chapter 23 for
// characters without width.
//
// # Limits
//
// Letters that look like others of another script stay. Joiners (U+200C, U+200D) stay, because
// Persian, Indic scripts and emoji need them.
package visible
