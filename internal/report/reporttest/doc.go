// Package reporttest has a document of every kind, for the tests of package report and of what
// shows documents.
//
// # Model
//
// [Documents] are made by the constructors of package report from values that are the same on every
// machine. The tests of report compare their JSON with golden files and with the schemas, those of
// package text what is printed of them.
//
// # Units
//
// Those of the documents.
//
// # Limits
//
// For tests only.
package reporttest
