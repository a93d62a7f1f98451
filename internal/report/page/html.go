package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"unicode"

	"github.com/linerate/linerate/internal/base/visible"
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
	_, err := w.Write(bytes.Map(shown, s.b.Bytes()))
	return err
}

// shown replaces runes that change the direction of text or are invisible: they could make the name
// of one host look like another.
func shown(r rune) rune {
	if visible.Hidden(r) && r != '\n' {
		return unicode.ReplacementChar
	}
	return r
}
