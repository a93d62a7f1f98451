package top_test

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/top"
)

// TestPicture draws the screen of the tests as the picture of the documentation,
// docs/pictures/top.svg.
func TestPicture(t *testing.T) {
	picture := drawn(busy(top.Begin{Filter: "eth0"}).Lines(80, 24))
	if err := xml.Unmarshal([]byte(picture), new(any)); err != nil || len(picture) > 60_000 {
		t.Errorf("a picture of %d bytes: %v", len(picture), err)
	}
	golden(t, "../../../docs/pictures/top.svg", picture)
}

// drawn returns lines as an SVG, with the colours of a common dark terminal.
func drawn(lines []top.Line) string {
	const column, row = 8.4, 18.0 // of 14 px monospace text, in pixels
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="linerate top">
<rect width="100%%" height="100%%" rx="6" fill="#1d2021"/>
<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="#d5d5d5">
`, 80*column+24, float64(len(lines))*row+20)
	for y, line := range lines {
		x := 0
		for _, s := range line {
			n := utf8.RuneCountInString(s.Text)
			if s.Look&top.Reverse != 0 {
				fmt.Fprintf(&b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"#d5d5d5\"/>\n",
					12+float64(x)*column, float64(y+1)*row-8, float64(n)*column)
			}
			// Each word has a place of its own, because fonts and blanks differ from viewer to viewer.
			for _, at := range words.FindAllStringIndex(s.Text, -1) {
				text := s.Text[at[0]:at[1]]
				before, long := utf8.RuneCountInString(s.Text[:at[0]]), utf8.RuneCountInString(text)
				fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" textLength=\"%.1f\"%s>", 12+float64(x+before)*column,
					float64(y+1)*row+6, float64(long)*column, style(s.Look))
				_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
				b.WriteString("</text>\n")
			}
			x += n
		}
	}
	return b.String() + "</g>\n</svg>\n"
}

var words = regexp.MustCompile(`\S+`)

// style returns the attributes of a look.
func style(l top.Look) string {
	var all string
	for _, c := range []struct {
		look top.Look
		is   string
	}{{top.Reverse, ` fill="#1d2021"`}, {top.Red, ` fill="#fb6f5c"`}, {top.Yellow, ` fill="#e7c547"`},
		{top.Green, ` fill="#a3c76d"`}} {
		if l&c.look != 0 {
			all = c.is
			break
		}
	}
	if l&top.Bold != 0 {
		all += ` font-weight="bold"`
	}
	if l&top.Dim != 0 {
		all += ` opacity="0.6"`
	}
	return all
}
