// Package credential reads what proves who somebody is out of files of its own, so that no file of
// settings has to hold it.
//
// # Model
//
// A secret is the text of a file; authorities are the certificates in one. Both are read each time
// that they are needed, so that they can be changed while a program runs.
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
// Who else can read a file is not looked at.
package credential
