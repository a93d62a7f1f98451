// Package gather asks many hosts at once, and fetches documents from them.
//
// # Model
//
// [Asker.Ask] sends one question to all hosts of a list, and returns when every one has answered or
// the time is over. Hosts that did not answer are named: the list says who was asked, not the
// answers.
// A host that is not connected is reported as such at once. Hosts spread their answers over a time
// that grows with their number, so that the one connection they arrive on is not cut. A gathering
// during which it was cut after all is marked incomplete, and says
// nothing of the missing hosts.
//
// [Asker.Fetch] fetches one document from each host, many hosts at a time: hash first, so that what
// the hub has already is not sent; packed; in parts of which each host has at most four on the way.
//
// # Units
//
// Times are durations; sizes are bytes.
//
// # Sources
//
// Package message for what is said; docs/design/0017-fleet.md for the sizes.
//
// # Limits
//
// A document has at most 32 MiB unpacked. An answer is what a host says, and proves only which host
// said it.
package gather
