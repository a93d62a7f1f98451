// Package page draws a tune as one HTML page that needs nothing else: no network, no script, no
// other file.
//
// # Model
//
// [Tune] and [Report] turn a document of package report into words and positions, and write these.
// The page has, in this order: the verdict with its number and interval; before and after with the
// guard-rails; the diagnosis; the ladder of effects (one trial per rung, its interval as a bar, the
// line that a lower end must pass); every segment in its order, with colours and shapes for the
// arms, shades for the phases, and a cross and a reason for a segment that does not count; the
// tables; what stays and how to undo it; how it was proved. Plots are inline SVG. Positions along x
// are per cent of the width, so that a plot fits a phone and a printed page without scaling its
// text; heights are pixels.
//
// A page consists of layouts with values: HTML as constants of this package, in which {} is the
// place of a value, section by section in the order of reading. The one function that writes
// escapes every value for its place (text, an attribute, a number of SVG, a path). The compiler
// does not accept a string as a layout, and a place in which no value is safe, such as a handler or
// an address, is an error. To change the text of the page, change its layout in sections.go or
// plots.go; colours and sizes are in style.css. Runes that turn or hide text are removed from the
// names of hosts. The content security policy of the page forbids scripts and requests.
//
// The package does not use html/template, because that calls methods by name, so that the linker
// would have to keep every exported method of the program (1.9 MB).
//
// # Units
//
// Effects are ratios on an axis on which twice and half are equally far, stretched around no
// change. Times are seconds since the start of the experiment.
//
// # Sources
//
// Forest plots: Lewis & Clarke, BMJ 322 (2001). HTML living standard; SVG 2; Content Security
// Policy level 3.
//
// # Limits
//
// A few hundred segments are drawn legibly; beyond that points overlap, and the table of raw
// segments (`linerate report --raw`) is the way.
package page
