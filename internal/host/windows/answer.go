package windows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrFormat reports an answer that is empty, cut off, or no JSON of [Script].
var ErrFormat = errors.New("not the expected form")

// Failure is an error of PowerShell, by what does not depend on the language.
type Failure struct {
	Category string // of System.Management.Automation.ErrorCategory: PermissionDenied, ObjectNotFound, …
	Code     string // the fully qualified identifier
}

// Error is "PowerShell: category (code)".
func (f *Failure) Error() string { return fmt.Sprintf("PowerShell: %s (%s)", f.Category, f.Code) }

// Program and Options run a script.
const Program = "powershell.exe"

// Arguments are those of Program for a pipeline that writes objects.
func Arguments(pipeline string) []string {
	return []string{"-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command", Script(pipeline)}
}

// Script wraps a pipeline. It holds no double quotes, which the command line of Windows would need
// to escape. Without the encoding PowerShell would write names in the code page of the console.
func Script(pipeline string) string {
	return "$ErrorActionPreference='Stop';[Console]::OutputEncoding=[Text.Encoding]::UTF8;" +
		"try{$r=@(" + pipeline + ");ConvertTo-Json -Compress -Depth 4 -InputObject @{ok=$true;rows=$r}}" +
		"catch{ConvertTo-Json -Compress -InputObject @{ok=$false;category=[string]$_.CategoryInfo.Category;" +
		"code=[string]$_.FullyQualifiedErrorId}}"
}

// Quote makes one literal of PowerShell. It takes typographic quotes for plain ones, so that they
// are doubled too. False: the text cannot be on a command line.
func Quote(text string) (string, bool) {
	if strings.ContainsAny(text, "\"\x00\r\n") {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range text {
		if strings.ContainsRune("'‘’‚‛", c) {
			b.WriteRune(c)
		}
		b.WriteRune(c)
	}
	b.WriteByte('\'')
	return b.String(), true
}

// Row is one object.
type Row map[string]json.RawMessage

// ParseAnswer reads what a Script printed. The error is a *[Failure] or ErrFormat. Some programs
// with the name of PowerShell print nothing and succeed: that is no answer.
func ParseAnswer(b []byte) ([]Row, error) {
	b = bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xef\xbb\xbf"))
	var answer struct {
		OK       *bool           `json:"ok"`
		Rows     json.RawMessage `json:"rows"`
		Category string          `json:"category"`
		Code     string          `json:"code"`
	}
	if err := json.Unmarshal(b, &answer); err != nil || answer.OK == nil {
		return nil, fmt.Errorf("PowerShell printed %d bytes: %w", len(b), ErrFormat)
	}
	if !*answer.OK {
		return nil, &Failure{answer.Category, answer.Code}
	}
	var rows []Row
	if json.Unmarshal(answer.Rows, &rows) == nil {
		return rows, nil
	}
	// One object without brackets.
	var row Row
	if err := json.Unmarshal(answer.Rows, &row); err != nil {
		return nil, fmt.Errorf("rows of PowerShell: %w", ErrFormat)
	}
	return []Row{row}, nil
}

// Texts returns the values of a field, which is a list or a single value. Null is none.
func (r Row) Texts(name string) []string {
	raw, ok := r[name]
	if !ok {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var out []string
	for _, item := range list {
		var text string
		switch {
		case string(item) == "null":
		case json.Unmarshal(item, &text) == nil:
			out = append(out, text)
		default:
			out = append(out, string(item))
		}
	}
	return out
}

// Text returns the first value of a field, or nothing.
func (r Row) Text(name string) string {
	if texts := r.Texts(name); len(texts) > 0 {
		return texts[0]
	}
	return ""
}

// Number returns a count. False: the field is not there, or no count.
func (r Row) Number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(r.Text(name), 10, 64)
	return n, err == nil
}
