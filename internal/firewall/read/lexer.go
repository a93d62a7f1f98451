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

// extension reports what a comment hides. Before 1.0.3 nft wrote an extension of iptables as the
// comment that iptables-translate makes of it, in the middle of the rule: "# match-set NAME dst
// counter packets 3 bytes 180 accept". kind is empty for a comment of a person; to is where the
// text continues.
func extension(before []token, comment string) (kind string, to int) {
	if match, n, found := strings.Cut(comment, " counter packets "); found && n != "" && n[0] >= '0' && n[0] <= '9' {
		return "match", len(match) + 1
	}
	// The target stands last, behind the counter that iptables gives to every rule.
	if n := len(before); n >= 5 && before[n-5].is("counter") && before[n-4].is("packets") && before[n-2].is("bytes") {
		return "target", len(comment)
	}
	return "", len(comment)
}

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
			end := i + 1
			for end < len(text) && text[end] != '\n' {
				end++
			}
			kind, to := extension(all, text[i:end])
			if kind != "" {
				// As newer versions write it. Between the words is nothing of this text.
				all = append(all, token{"xt", false, line, i, 0}, token{kind, false, line, 0, 0},
					token{strings.TrimSpace(text[i+1 : i+to]), true, line, 0, i + to})
			}
			i += to
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
