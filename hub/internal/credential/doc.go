// Package credential reads secrets and certificates from files, so that no configuration file has
// to hold them.
//
// # Model
//
// A secret is the text of a file; authorities are the certificates in one. The package reads the
// file at each use, so that it can change while a program runs.
//
// # Units
//
// Sizes are bytes.
//
// # Sources
//
// RFC 7468 for certificates as text.
//
// # Limits
//
// The package does not check which users can read a file.
package credential
