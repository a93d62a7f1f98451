package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Tags of HTML that end a piece of text, that separate cells, and that only format. Angle brackets
// of anything else stay: route add <net>, 2>&1, <EOF.
var (
	breaking = pattern.New(`(?i)</?(?:p|br|li|ul|ol|tr|div|pre|table|tbody|thead|h[1-6]|dt|dd|blockquote)` +
		`(?:\s[^<>]*)?/?>`)
	cell   = pattern.New(`(?i)<t[dh](?:\s[^<>]*)?>`)
	format = pattern.New(`(?i)</t[dh]>|</?(?:code|string|b|i|em|strong|tt|kbd|samp|span|font|a|u|small|nobr|var)` +
		`(?:\s[^<>]*)?>`)
)

// forumTag is a tag of BBCode, which old forums have.
var forumTag = pattern.New(`(?i)\[/?(?:color|font|size|b|i|u|code|quote|url|list|center|left|indent)(?:=[^\]]*)?\]`)

// entities are the character references that hide signs of a setting. They need their semicolon:
// cmd&reg add is two commands.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&#x27;", "'", "&apos;", "'",
	"&nbsp;", " ", "&#160;", " ", "&amp;", "&", "&equals;", "=", "&#61;", "=")

// pieces takes the markup off a line and returns what is left, in parts that a browser would show
// on lines of their own.
func pieces(text string) []string {
	if strings.Contains(text, "[/") {
		text = forumTag.ReplaceAllString(text, "")
	}
	if !strings.ContainsAny(text, "<&") {
		return []string{text}
	}
	plain := breaking.ReplaceAllString(text, "\n")
	if cell.MatchString(plain) {
		plain = cell.ReplaceAllString(plain, " | ")
	}
	plain = entities.Replace(format.ReplaceAllString(plain, ""))
	if plain == text {
		return []string{text}
	}
	var parts []string
	for _, p := range strings.Split(plain, "\n") {
		// One cell alone on its line: its row goes on in the next lines.
		if strings.Count(p, "|") == 1 {
			p = strings.TrimPrefix(strings.TrimSpace(p), "|")
		}
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// rule is the line below the head of a table: |---|:--:|.
var tableRule = pattern.New(`^\|?[\s:|+-]*-[\s:|+-]*$`)

// columns are the words at the head of a column of values, best first. A table of what to set often
// has a column of defaults as well.
var columns = []string{"recommended", "suggested", "tuned", "optim", "new", "set to", "setting", "value"}

// nameCell is the name of a value of the registry in a cell, perhaps with its data or a remark, and
// dataCell begins with a number.
var (
	nameCell = pattern.New("^([A-Za-z]\\w{6,})[`*]*(?:\\s*=\\s*(\\w+)|\\s*\\(.*)?$")
	dataCell = pattern.New("^[`*]*(0x[0-9a-fA-F]+|\\d+)\\b")
)

// keyWithData is a cell with a key, the name of a value below it and its data.
var keyWithData = pattern.New("(?i)\\|\\s*[`*]*(hk(?:lm|cu|ey_\\w+):?\\\\[^|`=]*?\\w)[`*]*\\s*(?:=|:|→)\\s*[`*]*" +
	"(?:dword:)?(0x[0-9a-f]+|\\d+)\\b[^|]*\\|")

// keyCell reads a row that has such a cell.
func (r *reader) keyCell(text string) bool {
	if !r.windows || !strings.HasPrefix(text, "|") {
		return false
	}
	m := keyWithData.FindStringSubmatch(text)
	if m != nil {
		r.add(Windows, "registry:"+registryPathOf(m[1]), number(m[2]))
	}
	return m != nil
}

// registryRow reads a row for a value of the registry, in a page about it.
func (r *reader) registryRow(cells []string) bool {
	m := nameCell.FindStringSubmatch(cells[0])
	if m == nil || !innerCapital.MatchString(m[1]) {
		return false
	}
	full := registryNamed(m[1])
	cells[0] = m[2]
	for i, c := range cells {
		if value := dataCell.FindStringSubmatch(c); value != nil && full != "" && (i == 0 || i >= r.valueColumn) {
			r.add(Windows, full, number(value[1]))
			return true
		}
	}
	return full != "" && r.valueColumn >= len(cells)
}

// table reads a row of a table: the name in one cell, the value in the column that the head names,
// or else the next.
func (r *reader) table(text string) bool {
	if strings.Count(text, "|") < 2 || strings.Contains(text, "||") {
		return false
	}
	if tableRule.MatchString(text) {
		return true
	}
	cells := cellsOf(text)
	at := -1
	for i, c := range cells {
		if m := loneName.FindStringSubmatch(c); m != nil {
			if _, ok := sysctlOS(m[1]); ok {
				at = i
				break
			}
		}
	}
	if at < 0 {
		if r.windows && len(cells) > 0 && r.registryRow(cells) {
			return true
		}
		r.tableHead(cells)
		return false
	}
	column := at + 1
	if r.valueColumn > at && r.valueColumn < len(cells) {
		column = r.valueColumn
	}
	if column == at+1 && column+1 < len(cells) && ofKernel.MatchString(cells[column]) {
		column++
	}
	if column >= len(cells) || cells[column] == "" || cells[column] == "-" {
		return false
	}
	return r.sysctl(loneName.FindStringSubmatch(cells[at])[1], plainValue(cells[column]))
}

// ofKernel is a cell with a default, before the cell with what to set.
var ofKernel = pattern.New(`^[\d ]+\(.*(?:default|默认|預設).*\)$`)

// tableHead remembers which column holds the values.
func (r *reader) tableHead(cells []string) {
	r.valueColumn = 0
	if len(cells) > 1 && strings.Contains(strings.ToLower(cells[1]), "default") {
		r.valueColumn = len(cells) // it may have none, but for a column found below
	}
	for _, word := range columns {
		for i, c := range cells {
			if i > 0 && strings.Contains(strings.ToLower(c), word) && !strings.Contains(strings.ToLower(c), "default") {
				r.valueColumn = i
				return
			}
		}
	}
}

// saidCell is a number at the head of a sentence about it.
var saidCell = pattern.New("^(?:`(\\d+)`|(\\d+) is) [a-z]+ [a-zA-Z]")

// cellsOf splits a row, without the bars at its ends, and takes backquotes off its cells.
func cellsOf(text string) []string {
	text = strings.Trim(strings.TrimSpace(text), "|")
	var cells []string
	for _, c := range strings.Split(text, "|") {
		c = strings.TrimSpace(c)
		if m := saidCell.FindStringSubmatch(c); m != nil {
			c = m[1] + m[2]
		}
		if c = strings.Trim(c, "`*"); c != "" || len(cells) > 0 {
			cells = append(cells, c)
		}
	}
	return cells
}
