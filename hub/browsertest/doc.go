// Package browsertest drives the hub's page in a real Chromium. It holds tests alone.
//
// # Model
//
// One browser serves all tests, and each test opens a tab on a fake hub of its own. The fake hub
// answers from the real page, behind the real frame of package web, with figures computed from a
// fixed time. A test fails on every console error, exception, policy violation and request to
// another origin that it does not expect.
//
// The package is a module, so that neither the hub nor its other tests depend on chromedp.
//
// # Units
//
// Sizes are CSS pixels.
//
// # Sources
//
// The contrast bounds come from WCAG 2.2, success criterion 1.4.3.
//
// # Limits
//
// The tests need Chromium (testenv.Browser). No test measures speed: a condition that never becomes
// true ends in a timeout of two minutes.
package browsertest
