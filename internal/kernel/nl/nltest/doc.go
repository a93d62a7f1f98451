// Package nltest has what the tests of package nl and of the rooms above it share: a network
// namespace of their own, the other programs that they compare themselves with, and messages as the
// kernel makes them. It is for tests alone, and imports no room, so that all can import it.
package nltest
