// Package api is what a hub tells to programs: the query API of Prometheus, so that whatever draws
// from Prometheus draws from a hub, and our own JSON for what Prometheus knows nothing of (events,
// documents, findings, comparisons).
//
// # Model
//
// [New] gives one handler for both. Prometheus's part lives below /api/v1/ and is as its HTTP API
// documents it, byte for byte where there is data: values are text, NaN and infinities have words.
// Ours lives below /api/linerate/v1/; its documents are named in their key "schema". Errors of both
// have the form of Prometheus's. /metrics is the last reading as text, /healthz says ok.
//
// Whatever is asked costs a bounded amount: 11 000 points a series, a bounded number of series, of
// evaluations within a query, of bytes of an answer, of seconds; and a client that goes away ends
// its query. Bad input is 400 or 422, never 5xx; 503 is for what may be asked again soon.
//
// # Units
//
// Times are Unix seconds or RFC 3339 in questions, Unix seconds in answers of Prometheus's part and
// RFC 3339 in ours.
//
// # Sources
//
// Prometheus's documentation of its HTTP API and the code of its package web/api/v1; its
// documentation of the text exposition format 0.0.4; openapi.json in this folder for our own part.
//
// # Limits
//
// There are no histograms, exemplars, targets or rules: what asks for them gets an empty answer.
// Nothing can be written. This package knows nothing of who asks: package web stands before it.
package api
