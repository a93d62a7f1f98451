// Package alert evaluates rules over a history and notifies people and programs when one holds, and
// when it no longer does.
//
// # Model
//
// A [Config] is one rule: a PromQL query that fires while it returns series, or the code of a
// finding that fires while the verdict holds. Rules come from alerts: in the hub's configuration,
// from rule files in Prometheus's format, and from the file that comes with the hub. Each becomes
// an alerting rule of Prometheus's package rules, which expands its templates and moves its alerts:
// pending until the rule has held for its time, then firing, then resolved. This package schedules
// the evaluations, answers findings, bounds the number of alerts, remembers alerts across restarts,
// and notifies.
//
// [Watcher.Evaluate] evaluates all rules that are due. A receiver gets all alerts of a rule in one
// message, news in the next one, and a repeat at intervals while something fires. The watcher keeps
// on disk what each receiver knows, so a restart repeats nothing and loses nothing. A webhook
// that a rule no longer has, and that knows of alerts, gets a last message: they are resolved. Its
// address is on disk for that, in a file that only the hub's user can read.
//
// # Units
//
// Values have the units of the query. Times in messages are RFC 3339 in UTC.
//
// # Sources
//
// Rules and rule files: Prometheus's documentation, "Alerting rules", and its package rules.
// Webhooks get Alertmanager's webhook message, version "4" (Prometheus's documentation,
// "webhook_config"). Alertmanagers get POST /api/v2/alerts as in Alertmanager's OpenAPI
// specification.
//
// # Limits
//
// A rule has at most as many alerts as its bound; the watcher counts and reports the rest. It
// retries a message that a receiver does not take, later each time. An alert that came and went
// in the meantime is only in the timeline.
package alert
