package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"unicode"

	"github.com/linerate/linerate/internal/report"
)

//go:embed page.html
var source string

// Tune writes a tune as one page.
func Tune(w io.Writer, d *report.TuneDocument) error { return write(w, newView(d, nil)) }

// Report writes a stored run as one page, with what its segments say when they are judged again.
func Report(w io.Writer, d *report.ReportDocument) error { return write(w, newView(d.Run, d.Again)) }

// The template is parsed at each call: a page is written once in minutes, and a package variable would make a broken
// template a panic at start of every command. It is rendered into memory first, so that a failure leaves no half page
// behind.
func write(w io.Writer, v view) error {
	t, err := template.New("page").Parse(source)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	_, err = w.Write(bytes.Map(visible, b.Bytes()))
	return err
}

// visible replaces what turns the direction of text or cannot be seen: in the name of a host it would make one name look like another.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
		return unicode.ReplacementChar
	}
	return r
}
