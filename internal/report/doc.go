// Package report makes the documents that leave linerate, and writes them as JSON.
//
// # Model
//
// A document is one value with an [Envelope] (schema, version, time, host) and the keys of its
// command. Constructors (NewInspect, NewMeasure, …) build documents from the types of the wings
// below; nothing else decides about their contents. A wing above, such as top, owns its document
// and embeds the envelope. [Encode] writes JSON, [SegmentsCSV] the raw segments of a tune. Package
// text writes a document as one screen of text, package page draws a tune, and package words has
// the phrases of both. [Schemas] derives a JSON Schema (draft 2020-12) for every document from the
// Go types: the files in docs/schema are generated from it, and the tests check every golden
// document against it.
//
// # Units
//
// JSON keys carry the unit: _bits_per_second, _bytes, _seconds, _ratio; counters end in _total. A
// value that is not known is absent; null, NaN and infinities never appear.
//
// # Sources
//
// docs/schema for the contract; JSON Schema draft 2020-12 (json-schema.org); RFC 4180 for the table
// of segments.
//
// # Limits
//
// A document is complete in memory before its first byte is written.
package report
