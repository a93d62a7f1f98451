// Package page draws a tune as one HTML page that needs nothing else: no network, no script, no
// other file.
//
// # Model
//
// [Tune] and [Report] turn a document of package report into what the page shows: words and
// positions, nothing left to decide. The page has, in this order: the verdict with its number and
// interval; before and after with the guard-rails; the diagnosis; the ladder of effects (one trial
// a rung, its interval as a bar, the line that a lower end must pass); every segment in its order,
// with the arms told by colour and by shape, the phases shaded, and what does not count crossed out
// with its reason; the tables; what stays and how to undo it; how it was proved. Plots are inline
// SVG. Positions along x are per cent of the width, so that a plot fits a phone and a printed page
// without scaling its text; heights are pixels.
//
// A page is layouts with values: HTML as constants of this package, in which {} is the place of a
// value, written section by section in the order of reading. Every value is escaped for the place
// where it stands (text, an attribute, a number of SVG, a path), by the one function that writes; a
// string is no layout for the compiler, and a place in which nothing is safe, such as a handler or
// an address, is an error. To change what the page says, change its layout in sections.go or
// plots.go, colours and sizes in style.css. Names that came from hosts lose what turns or hides
// text. The page forbids itself scripts and requests by its content security policy.
//
// The package html/template would do the same and is not used: it calls methods by their names, so
// that the linker must keep every exported method of the whole program, 1.9 MB of it.
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
