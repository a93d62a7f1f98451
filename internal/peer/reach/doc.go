// Package reach opens the way to any kind of target: `linerate serve`, linerate over ssh, another
// program's server, or a kernel that only answers echo requests.
//
// # Model
//
// A target is the text that a user types. [Open] returns a [Way] to it, on which tests of every
// kind of target run one after another through the same call. [Suite] returns the tests to run when
// the user names none. [All] runs several tests, so that a test without an answer does not hide the
// others. A [Stranger] is a far host without linerate, in the form in which it can be diagnosed.
//
// # Units
//
// Those of package traffic.
//
// # Sources
//
// Packages peer, dialect and dialect/icmp.
//
// # Limits
//
// A way to another program's server opens no connection in advance: each test makes its own.
package reach
