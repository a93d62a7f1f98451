package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// A batch file has functions: lines from a label up to the end of the file that a call of the label
// reads, with the words of the call in %1 to %9. A tilde takes their quotes off.
//
//	call :set "Services\Tcpip\Parameters" "DefaultTTL" 64
//	:set
//	reg add "HKLM\SYSTEM\CurrentControlSet\%~1" /v %2 /t REG_DWORD /d %3 /f
//	exit /b

var (
	batchLabel = pattern.New(`^:([A-Za-z_][\w.-]*)$`)
	batchEnd   = pattern.New(`(?i)^@?(?:exit\s+/b\b.*|goto\s*:?eof|:[a-z_][\w.-]*)$`)
	batchCall  = pattern.New(`(?i)(?:^|[(&@]|\bdo\s)\s*call\s+(:[a-z_][\w.-]*)(\s+\S.*)$`)
	// batchArgument is an argument whose quotes are off, or one in the quotes of its call.
	batchArgument  = pattern.New(`%~([1-9])`)
	quotedArgument = pattern.New(`%([1-9])`)
	batchAlias     = pattern.New(`(?i)^@?set\s+"?([A-Za-z_]\w*)=%~?([1-9])"?$`)
	setsInBatch    = pattern.New(`(?i)\$\{.*(?:netsh|reg|powershell)|(?:netsh|reg|powershell).*\$\{`)
)

// findBatchFunctions keeps the lines of each function that sets something by its arguments, with
// the arguments written as a shell has them.
func (s *script) findBatchFunctions(lines []line) {
	const longest = 40
	for i, l := range lines {
		m := batchLabel.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		var body []string
		end := i + 1
		for ; end < min(len(lines), i+longest) && !batchEnd.MatchString(lines[end].text); end++ {
			t := batchAlias.ReplaceAllString(lines[end].text, "$1=$${$2}")
			body = append(body, quotedArgument.ReplaceAllString(batchArgument.ReplaceAllString(t, "$${$1}"), `"$${$1}"`))
		}
		if body = withoutAliases(body); !setsInBatch.MatchString(strings.Join(body, " ")) {
			continue
		}
		s.functions[strings.ToLower(l.text)] = body
		for _, l := range lines[i:end] {
			s.body[l.number] = true
		}
	}
}
