package report

import (
	"fmt"
	"io"
)

// TuneHTML writes a tune document as one page that needs no network.
func TuneHTML(w io.Writer, d *TuneDocument) error {
	verdict, sentence := Headline(d)
	_, err := fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%s\n", verdict, sentence)
	return err
}
