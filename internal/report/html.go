package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageTemplate string

// TuneHTML writes a tune document as one page: everything inline, no script, no network, light and dark. Names that came from the
// hosts are escaped by html/template for the place where they stand.
//
// ReportHTML is TuneHTML with what the segments say when they are judged again.
func ReportHTML(w io.Writer, d *ReportDocument) error { return writePage(w, newPage(d.Run, d.Again)) }

// The template is parsed at each call: a page is written once in minutes, and a package variable would make a broken
// template a panic at start of every command. It is rendered into memory first, so that a failure leaves no half page
// behind.
func TuneHTML(w io.Writer, d *TuneDocument) error { return writePage(w, newPage(d, nil)) }

func writePage(w io.Writer, p page) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
