// Package page has the web page of the hub: files that a browser gets, and the handler that gives
// them.
//
// # Model
//
// [Handler] serves what lies in files/: one HTML document, style sheets, JavaScript modules and
// uPlot, which draws the graphs. There is no build step: the browser gets the files as they are in
// the tree. Everything but the document is served under the hash of all files together, so a
// browser keeps them for good and never mixes two versions; the document itself is asked for again
// each time and names that hash.
//
// The page asks the API of the hub on the same origin and nobody else. Its content security policy
// allows no other origin, no script or style in the document, and, through trusted types, no way to
// make HTML out of a string: names of interfaces and documents of other hosts can only become text.
//
// To change what is seen, begin at files/js/main.js, which chooses the view by the address; one
// file has one idea, and says in its first lines which.
//
// # Units
//
// Rates in bits per second with SI prefixes; times in the local zone of the browser, in UTC where
// the mouse stays.
//
// # Sources
//
// Content Security Policy level 3, Trusted Types, RFC 9110 and 9111; uPlot 1.6
// (files/vendor/uplot/VERSION). What the graphs show, and how, is MRTG's: in above, out below, with
// the current, average, maximum and 95th percentile. Colours after Okabe and Ito.
//
// # Limits
//
// Browsers of 2022 and later: modules, dialog, ResizeObserver.
package page
