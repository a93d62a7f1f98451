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
	fmt.Fprintf(p, ".TP\n\\fB%s\\fR\n%s\n", escape(name), escape(text))
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
	keep := indented(lines[0])
	if keep {
		p.WriteString(".nf\n")
	}
	for _, line := range lines {
		if keep {
			line = strings.TrimPrefix(line, "  ")
		}
		p.WriteString(escape(strings.TrimRight(line, " ")) + "\n")
	}
	if keep {
		p.WriteString(".fi\n")
	}
}

// escape keeps roff from reading a text as requests: a backslash, a point or an apostrophe at the
// start. A minus is no hyphen, so that a copied option works.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
