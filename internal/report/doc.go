// Package report makes the documents that leave linerate, and shows them as JSON and as text.
//
// # Model
//
// A document is one value with an [Envelope] (schema, version, time, host) and the keys of its command. Constructors (NewInspect,
// NewMeasure, …) build documents from the types of the rooms below; nothing else decides what a document holds. [Encode]
// writes JSON, the functions whose names end in Text write one screen of plain words; package page draws a tune.
// [Schemas] derives a JSON Schema (draft 2020-12) for every document from the Go types; the files in docs/schema are generated
// from it and every golden document of the tests is checked against them.
//
// # Units
//
// JSON keys carry the unit: _bits_per_second, _bytes, _seconds, _ratio; counters end in _total. A value that is not known is
// absent; null, NaN and infinities never appear. Text shows rates in decimal bits, memory in binary bytes.
//
// # Sources
//
// docs/schema for the contract; JSON Schema draft 2020-12 (json-schema.org); NO_COLOR (no-color.org), honoured by the caller
// through [Style].
//
// # Limits
//
// Text is laid out for 100 columns and counts every rune as one column.
package report
