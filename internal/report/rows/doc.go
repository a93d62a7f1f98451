// Package rows writes documents as tables for other programs.
//
// # Model
//
// A [Table] has labels, which name a row, and values, which are numbers. [Write] writes it in one
// of three formats: comma-separated values, the text exposition format of Prometheus, or the line
// protocol of InfluxDB. [Measure], [History] and [Runs] make the tables of documents; a wing above
// makes those of its own.
//
// # Units
//
// Those of the document: the name of a value ends in its unit.
//
// # Sources
//
// RFC 4180; the text-based format 0.0.4 of Prometheus (exposition_formats.md); the line protocol
// reference of InfluxDB 2.
//
// # Limits
//
// A table has one row for each set of labels. Prometheus's format carries no time: it is a picture
// of now, as the textfile collector of node_exporter wants it. The line protocol has no absent
// tag, so empty labels are left out there.
package rows
