package main

import (
	"fmt"
	"strings"
)

// page is the source of one page, in the macros of man(7).
type page struct{ strings.Builder }

func (p *page) head(name, section, date, version string) {
	fmt.Fprintf(p, ".TH %s %s %q %q\n", escape(strings.ToUpper(name)), section, date, version)
}

func (p *page) heading(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

func (p *page) section(title, line string) { fmt.Fprintf(p, ".SH %s\n%s\n", title, line) }

// item writes a name in bold with its explanation.
func (p *page) item(name, text string) {
	fmt.Fprintf(p, ".TP\n\\fB%s\\fR\n", escape(name))
	p.filled(text)
}

// filled writes a text whose lines a formatter fills, in lines of at most 80 bytes, which mandoc -T
// lint asks for. A longer word has a line of its own.
func (p *page) filled(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = inText(word)
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > 80:
			p.WriteString(atStart(line) + "\n")
			line = word
		default:
			line += " " + word
		}
	}
	p.WriteString(atStart(line) + "\n")
}

// text writes what a terminal shows: paragraphs are filled, indented blocks keep their lines.
func (p *page) text(text string) {
	first := true
	for block := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		for len(lines) > 0 {
			n := 1
			for n < len(lines) && indented(lines[n]) == indented(lines[0]) {
				n++
			}
			if strings.TrimSpace(lines[0]) != "" {
				if !first {
					p.WriteString(".PP\n")
				}
				first = false
				p.block(lines[:n])
			}
			lines = lines[n:]
		}
	}
}

func indented(line string) bool { return strings.HasPrefix(line, "  ") }

func (p *page) block(lines []string) {
	if !indented(lines[0]) {
		p.filled(strings.Join(lines, " "))
		return
	}
	p.WriteString(".nf\n")
	for _, line := range lines {
		p.WriteString(escape(strings.TrimRight(strings.TrimPrefix(line, "  "), " ")) + "\n")
	}
	p.WriteString(".fi\n")
}

// escape keeps roff from reading a line as requests.
func escape(text string) string { return atStart(inText(text)) }

// inText escapes what roff reads anywhere in a line. A minus is no hyphen, so that a copied option
// works. Characters beyond ASCII are named by their numbers, which groff and mandoc read without a
// preprocessor that knows the encoding.
func inText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	var b strings.Builder
	for _, r := range text {
		if r > '~' {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// atStart keeps a line from being a request, which begins with a point.
func atStart(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
