package read

import (
	"fmt"
	"strings"
)

// token is a word of nft's text, a string without its quotes, one of { } ( ) , ; or the end of a
// line.
type token struct {
	text   string
	quoted bool
	line   int
	at, to int // bytes of the text
}

func (t token) is(s string) bool { return !t.quoted && t.text == s }

// mostTokens bounds a text. A hundred thousand elements with counters and comments are a million.
const mostTokens = 20_000_000

// lex cuts a text of nft into tokens. Comments are left out.
func lex(text string) ([]token, error) {
	var all []token
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		if len(all) > mostTokens {
			return nil, fmt.Errorf("line %d: the text is too long", line)
		}
		switch {
		case c == '\n':
			all = append(all, token{"\n", false, line, i, i + 1})
			line++
			i++
		case c == '\\' && i+1 < len(text) && text[i+1] == '\n':
			line++
			i += 2
		case c == ' ', c == '\t', c == '\r':
			i++
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '"':
			end := strings.IndexAny(text[i+1:], "\"\n")
			if end < 0 || text[i+1+end] == '\n' {
				return nil, fmt.Errorf("line %d: a string has no end", line)
			}
			to := i + end + 2
			value := text[i+1 : to-1]
			// nft writes the pattern of an interface inside or behind its quotes.
			if to < len(text) && text[to] == '*' {
				value += "*"
				to++
			}
			all = append(all, token{value, true, line, i, to})
			i = to
		case strings.IndexByte("{}(),;", c) >= 0:
			all = append(all, token{string(c), false, line, i, i + 1})
			i++
		default:
			to := i
			for to < len(text) && strings.IndexByte(" \t\r\n{}(),;\"", text[to]) < 0 {
				to++
			}
			all = append(all, token{text[i:to], false, line, i, to})
			i = to
		}
	}
	return all, nil
}
