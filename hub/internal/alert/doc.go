// Package alert watches a history by rules and tells people and programs when one of them holds,
// and when it no longer does.
//
// # Model
//
// A [Config] is one rule: a query that fires while it gives series, or the code of a finding that
// fires while the verdict holds. Every set of labels that a rule gives is an alert of its own:
// pending until it has held for the rule's time, firing, and resolved when it has been gone for as
// long as the rule keeps it. [Watcher.Evaluate] is one look at all rules that are due. The
// receivers of a rule are told of all its alerts in one message, of what is new in the one after,
// and again at intervals while something fires. What each of them was told is kept on disk, so that
// a restart tells nothing twice and nothing is left untold.
//
// # Units
//
// Those of the query. Times in messages are RFC 3339 in UTC.
//
// # Sources
//
// The message is that of Alertmanager's webhook, version "4" (Prometheus's documentation,
// "webhook_config"), so that receivers written for it need not know who sends. The states are those
// of Prometheus's alerting rules.
//
// # Limits
//
// A rule has so many alerts as its bound allows; what is over it is counted and told. A message
// that a receiver does not take is tried again, later each time; an alert that came and went
// meanwhile is then not told, and stands in the timeline alone.
package alert
