// Package channel is one side's use of a control channel for one test: messages in and out, with an
// end to every wait.
//
// # Model
//
// A [Session] has a reader and a writer on a [Control] and one context that dies with the channel
// and carries the reason. The reader ends by itself after the other side's last message of the
// test, so that the channel is in step for whatever comes next. [Session.Await] waits for one
// message, [Session.Farewell] for the last one; [Unexpected] turns a message that has no place into
// the error that explains it best: the other side's own words. [Heed] lets a wait be broken off
// from outside until the test has begun.
//
// # Units
//
// Durations.
//
// # Sources
//
// The messages are those of package traffic, whose comment has their order.
//
// # Limits
//
// One session at a time on a channel. Bodies are decoded by whoever asked for them and must be
// checked there.
package channel
