// Package guesttest runs tests in a guest with the real drivers, by the name that they have on the
// host.
//
// # Model
//
// A test package calls [Main] in its TestMain. A test that belongs in a guest begins with
//
//	if !guesttest.In(t) {
//		return // it ran in the guest, and what it said is the result
//	}
//
// On the host In boots the one guest of the package, at the first test that asks, runs the test of
// the same name there with the very test binary, and fails this one if that one failed or was
// skipped. In the guest it returns true. [Others] runs tests of the package that know nothing of
// guests, on the guest's kernel.
//
// A line that a test logs in the guest and that begins with "note: " is logged here too, whatever
// the result: what a driver made of a number is worth seeing also where it is right.
//
// # Cards
//
// The guest has an e1000 as the 82540EM and as the 82545EM, which takes coalescing parameters, an
// e1000e, a virtio card with two pairs of queues, a vmxnet3, and on USB one that can be powered
// down while it is not used.
//
// # Limits
//
// For tests only. Needs QEMU and the kernel of a Debian mirror; without them tests are skipped, or
// fail when LINERATE_REQUIRE names guest.
package guesttest
