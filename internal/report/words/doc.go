// Package words puts into words what more than one form of a document says: the verdict of a tune,
// its effects and figures, the comparisons judged again, evidence, counts. The text of a terminal
// and the page say the same thing with the same words, because they have them from here.
//
// # Model
//
// Functions from values to phrases. They know nothing of lines, columns or colours, and they make
// nothing harmless: phrases hold names that came from hosts, and who shows them does it for the
// place where they stand.
//
// # Units
//
// Effects are ratios (1 is no change); a zero is not known and gives an empty phrase. Figures are
// in the unit of the document, guard-rails in that of their key. Rates are shown in decimal bits,
// memory in binary bytes.
//
// # Limits
//
// English only.
package words
