// Package nltest holds helpers for the tests of package nl and its subpackages: a private network
// namespace, the programs of other projects to compare with, and messages as the kernel encodes
// them. It imports none of these packages, so that all of them can import it. Only tests use it.
package nltest
