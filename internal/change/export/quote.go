package export

import (
	"encoding/json"
	"strings"
)

// yamlQuote returns a double-quoted scalar of YAML 1.1 and 1.2: JSON strings are a part of both.
//
// U+0085, U+2028 and U+2029 are line breaks for YAML 1.1; json.Marshal escapes the last two.
func yamlQuote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return strings.ReplaceAll(string(b), "\u0085", `\u0085`)
}

// ansibleQuote is yamlQuote for a text that Ansible must not treat as a template.
func ansibleQuote(s string) string {
	if strings.ContainsAny(s, "{}") {
		return "!unsafe " + yamlQuote(s)
	}
	return yamlQuote(s)
}

// nixQuote returns a string of the Nix language.
func nixQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "\n", `\n`, "\r", `\r`, "\t",
		`\t`).Replace(s) + `"`
}

// nixLines returns an indented string; Nix removes the indent of each line.
func nixLines(s, indent string) string {
	escaped := strings.NewReplacer(`''`, `'''`, `${`, `''${`).Replace(s)
	var b strings.Builder
	b.WriteString("''\n")
	b.WriteString(indented(escaped, indent))
	b.WriteString(indent[:len(indent)-min(2, len(indent))] + "''")
	return b.String()
}

// indented adds blanks before every line that is not empty.
func indented(s, by string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if line != "\n" {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return b.String()
}

// comment reduces a text to characters that cannot leave its line, in any encoding.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
