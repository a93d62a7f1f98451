// Package api serves programs: the query API of Prometheus, so that clients of Prometheus work with
// a hub, and the hub's own JSON for what Prometheus does not have (events, documents, findings,
// comparisons).
//
// # Model
//
// [New] returns one handler for both. Prometheus's part is below /api/v1/ and follows its HTTP API
// documentation, byte for byte where there is data: values are text, NaN and infinities are words.
// The hub's part is below /api/linerate/v1/; the key "schema" names each document. Errors of both
// have Prometheus's form. /metrics is the last reading as text, /healthz answers ok.
//
// Every request has a bounded cost: 11 000 points a series, and bounds on the number of series, the
// evaluations of a query, the bytes of an answer and its time. A client that disconnects ends its
// query. Bad input is 400 or 422, never 5xx; 503 means that the client may retry soon.
//
// # Units
//
// Times in requests are Unix seconds or RFC 3339. Answers have Unix seconds in Prometheus's part
// and RFC 3339 in the hub's.
//
// # Sources
//
// Prometheus's documentation of its HTTP API and the code of its package web/api/v1; its
// documentation of the text exposition format 0.0.4; openapi.json in this folder for the hub's
// part.
//
// # Limits
//
// The hub has no histograms, exemplars or targets, and does not list its rules: requests for them
// get an empty answer. The API is read-only. It does not authenticate: package web does.
package api
