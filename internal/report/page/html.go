package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"unicode"

	"github.com/linerate/linerate/internal/report"
)

// style has the colours and sizes of the page.
//
//go:embed style.css
var style markup

// Tune writes a tune as one page.
func Tune(w io.Writer, d *report.TuneDocument) error { return write(w, newView(d, nil)) }

// Report writes a stored run as one page, with the result of judging its segments again.
func Report(w io.Writer, d *report.ReportDocument) error { return write(w, newView(d.Run, d.Again)) }

// The page is complete in memory before it is written, so that a failure leaves no half page
// behind.
func write(w io.Writer, v view) error {
	var s sheet
	s.page(v)
	if s.err != nil {
		return fmt.Errorf("draw page: %w", s.err)
	}
	_, err := w.Write(bytes.Map(visible, s.b.Bytes()))
	return err
}

// visible replaces runes that change the direction of text or are invisible: they could make the
// name of one host look like another.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
		return unicode.ReplacementChar
	}
	return r
}
