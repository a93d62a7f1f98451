// Package visible is the one filter between text from elsewhere and a terminal, a log or a page.
//
// # Model
//
// A rune is [Hidden] when a reader does not see it but a terminal or a browser obeys it, or ignores
// it, so that two different names look the same: control characters (escape sequences begin with
// one), format characters, marks that change the direction of text or have no width, soft hyphens,
// fillers, tags, line and paragraph separators. Properties of Unicode decide. [Text] and [Line]
// replace each by U+FFFD; a byte that is no UTF-8 becomes U+FFFD too, because an 8-bit terminal
// obeys the bytes of C1. A [Writer] does the same to everything that passes, so that a message
// which was formed without this filter is harmless as well. The page of the hub has the same rule
// in dom.js.
//
// # Units
//
// None.
//
// # Sources
//
// ECMA-48 for control functions and their 8-bit forms; the Unicode Character Database for the
// properties Cc, Cf, Bidi_Control and Default_Ignorable_Code_Point; UAX #9 for the marks of
// direction; Trojan Source (CVE-2021-42574) for what they can do.
//
// # Limits
//
// Letters that look like others of another script stay, and so do blanks of all widths and
// combining marks. Joiners (U+200C, U+200D), variation selectors 1 to 16 and those of Mongolian
// stay, because Persian, Indic scripts, Mongolian and emoji need them; the signs of Arabic around
// numbers stay, because they are seen. The selectors of rare forms of Chinese characters (U+E0100
// on), fillers of old Korean and the tags of three flags do not.
package visible
