// Package words has the phrases that the text on a terminal and the page share: the verdict of a
// tune, its effects and figures, the comparisons judged again, evidence, counts.
//
// # Model
//
// Functions from values to phrases. They know nothing of lines, columns or colours. Phrases contain
// names from other hosts, and the functions do not escape them: the renderer does, for its medium.
//
// # Units
//
// Effects are ratios (1 is no change); zero is not known and gives an empty phrase. Figures are
// in the unit of the document, guard-rails in that of their key. Rates are shown in decimal bits,
// memory in binary bytes.
//
// # Limits
//
// English only.
package words
