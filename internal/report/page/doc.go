// Package page draws a tune as one HTML page that needs nothing else: no network, no script, no other file.
//
// # Model
//
// [Tune] and [Report] turn a document of package report into what the template shows: words and positions, nothing left to decide. The page has, in
// this order: the verdict with its number and interval; before and after with the guard-rails; the diagnosis; the ladder of effects
// (one trial a rung, its interval as a bar, the line that a lower end must pass); every segment in its order, with the arms told by colour and by
// shape, the phases shaded, and what does not count crossed out with its reason; the tables; what stays and how to undo it; how it was proved.
// Plots are inline SVG. Positions along x are per cent of the width, so that a plot fits a phone and a printed page without
// scaling its text; heights are pixels.
//
// Names that came from hosts are escaped by html/template for the place where they stand, and what turns or hides text is replaced. The page
// forbids itself scripts and requests by its content security policy.
//
// # Units
//
// Effects are ratios on an axis on which twice and half are equally far, stretched around no change. Times are seconds since the start of the experiment.
//
// # Sources
//
// Forest plots: Lewis & Clarke, BMJ 322 (2001). HTML living standard; SVG 2; Content Security Policy level 3.
//
// # Limits
//
// A few hundred segments are drawn legibly; beyond that points overlap, and the table of raw segments (`linerate report --raw`) is the way.
package page
