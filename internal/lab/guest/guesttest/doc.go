// Package guesttest runs tests in a guest with real drivers. Each test has the same name in the
// guest and on the host.
//
// # Model
//
// A test package calls [Main] in its TestMain. A test that belongs in a guest begins with
//
//	if !guesttest.In(t) {
//		return // the test ran in the guest, and its result is this test's result
//	}
//
// On the host, the first call of In boots the one guest of the package. In then runs the test of
// the same name there, with the same test binary, and fails the calling test if that test fails or
// is skipped. In the guest it returns true. [Others] runs tests of the package that do not know
// about guests on the guest's kernel.
//
// A line that a test logs in the guest and that begins with "note: " is also logged on the host,
// even where the test passes: it shows what a driver made of a number.
//
// # Cards
//
// The guest has two e1000 cards, an 82540EM and an 82545EM, of which the second takes coalescing
// parameters. It also has an e1000e, a virtio card with two pairs of queues, a vmxnet3, and a USB
// card that can be powered down while it is not used.
//
// # Limits
//
// For tests only. It needs QEMU and the kernel of a Debian mirror. Package testenv decides whether
// a test that lacks them is skipped or fails: its things Guest and, in the guest, NetNS, Peers,
// Network and Long.
package guesttest
