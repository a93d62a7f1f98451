// Package reach opens the way to a target, whatever its name says runs there: our own serve, our
// own program over ssh, another program's server, or nothing but a kernel that answers echo
// requests.
//
// # Model
//
// A target is text as people write it. [Open] gives a [Way], on which tests run one after the other
// by the same call for all of them; [Suite] is what is measured there when no test is named, and
// [All] runs several tests so that one that is not answered does not hide the others.
//
// # Units
//
// Those of package traffic.
//
// # Sources
//
// Packages peer, traffic/dialect and traffic/icmp.
//
// # Limits
//
// A way to another program's server opens nothing by itself: each test there is a conversation of
// its own.
package reach
