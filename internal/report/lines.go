package report

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/linerate/linerate/internal/traffic"
)

// SchemaLine names one line of --json-lines.
const SchemaLine = "linerate.line/1"

// LineKind is what one line of --json-lines carries.
type LineKind string

// The kinds of lines.
const (
	LineInterval LineKind = "interval" // an interim result of a test that runs
	LineEvent    LineKind = "event"    // a step of the command, in words
	LineReading  LineKind = "reading"  // a document of the live view, with one reading
	LineResult   LineKind = "result"   // the document that the command prints with --json
	LineError    LineKind = "error"    // why the command failed: the document that --json prints on standard error
)

// Line is linerate.line/1: what a command prints while it runs, one object a line. Each line is
// written whole, in one write; a line without its end is one that a killed command did not finish.
//
// The last line is the result or, of a command that failed, the error, which may follow a result.
// Lines that end with neither are those of a command that was killed, or whose reader went away.
type Line struct {
	Schema string    `json:"schema"`
	Time   time.Time `json:"time"` // when it was written
	Kind   LineKind  `json:"kind"`
	// of interval
	Test      traffic.Test      `json:"test,omitempty"`
	Direction traffic.Direction `json:"direction,omitempty"`
	Interval  *traffic.Interval `json:"interval,omitempty"`

	Message  string          `json:"message,omitempty"`  // of event
	Document json.RawMessage `json:"document,omitempty"` // of reading, result and error; its schema is a key of it
}

// NewLine returns a line of one kind, written now.
func NewLine(kind LineKind) *Line {
	return &Line{Schema: SchemaLine, Kind: kind, Time: time.Now().UTC().Truncate(time.Millisecond)}
}

// DocumentLine returns the line that carries a document.
func DocumentLine(kind LineKind, doc any) (*Line, error) {
	var b bytes.Buffer
	if err := Encode(&b, doc); err != nil {
		return nil, err
	}
	l := NewLine(kind)
	l.Document = bytes.TrimSpace(b.Bytes())
	return l, nil
}
