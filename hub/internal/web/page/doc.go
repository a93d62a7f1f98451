// Package page has the web page of the hub: the files for the browser, and the handler that serves
// them.
//
// # Model
//
// [Handler] serves files/: one HTML document, style sheets, JavaScript modules and uPlot, which
// draws the graphs. There is no build step: the browser gets the files of the source tree. All
// files but the document are served under a hash of all files together, so a browser caches them
// forever and never mixes two versions. The browser revalidates the document, which names that
// hash, each time.
//
// The page requests only the API of the hub, on the same origin. Its content security policy allows
// no other origin, and no script or style in the document. Trusted types forbid making HTML from a
// string: interface names and documents of other hosts can only become text.
//
// To change the page, begin at files/js/main.js, which chooses the view by the address. Each file
// has one idea, which its first lines name.
//
// # Units
//
// Rates in bits per second with SI prefixes; times in the browser's local zone, and in UTC under
// the mouse.
//
// # Sources
//
// Content Security Policy level 3, Trusted Types, RFC 9110 and 9111; uPlot 1.6
// (files/vendor/uplot/VERSION). The graphs follow MRTG: in above, out below, with the current,
// average, maximum and 95th percentile. Colours after Okabe and Ito.
//
// # Limits
//
// Browsers of 2022 and later: modules, dialog, ResizeObserver. Module hub/browsertest drives the
// page in Chromium.
package page
