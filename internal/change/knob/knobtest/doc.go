// Package knobtest holds the one suite that every backend of package knob passes, and a network
// namespace in which the live backend can be tested.
//
// # Model
//
// A [Fixture] is a host that a test made, seen through a backend, with what the suite may do to it.
// [Suite] writes, reads back, restores, refuses, races and removes devices. [NetNS] is a network
// namespace; all its calls run on threads inside it.
//
// # Units
//
// Values are texts, as in package knob.
//
// # Sources
//
// The contract of knob.Backend; the kernel's behaviour was seen on Linux 6.18.
//
// # Limits
//
// For tests only. NetNS needs CAP_SYS_ADMIN, and tests that use it need testenv.NetNS.
package knobtest
