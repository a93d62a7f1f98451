// Package reporttest has a document of every kind, for the tests of package report and of the
// packages that render documents.
//
// # Model
//
// [Documents] returns documents that the constructors of package report make from fixed values. The
// tests of report compare their JSON with golden files and with the schemas; those of package text
// compare the printed text.
//
// # Units
//
// Those of the documents.
//
// # Limits
//
// For tests only.
package reporttest
