package diagnose

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The codes that rules of this version give. The registry holds more: codes are reserved before their rules exist.
const (
	LinkRateReached       Code = "link-rate-reached"
	ReceiveWindowLimited  Code = "receive-window-limited"
	SendBufferLimited     Code = "send-buffer-limited"
	WindowScalingOff      Code = "window-scaling-off"
	RouteWindowClamped    Code = "route-window-clamped"
	PathLoss              Code = "path-loss"
	OffloadsOff           Code = "offloads-off"
	MeasurementUnreliable Code = "measurement-unreliable"
	Healthy               Code = "healthy"
)

// Entry is what the registry knows of one code.
type Entry struct {
	Code         Code   `json:"code"`
	Title        string `json:"title"`                   // a few words
	Meaning      string `json:"meaning"`                 // what the code says, in plain words
	Shows        string `json:"shows,omitempty"`         // the evidence that the rule asks for
	ConfusedWith string `json:"confused_with,omitempty"` // the look-alikes that the rule rejects
	Remedy       string `json:"remedy,omitempty"`        // what to do
	Rule         bool   `json:"rule"`                    // false: the code is reserved, this version never gives it
}

// Page is the path of the entry's documentation inside the source tree.
func (e Entry) Page() string { return "docs/findings/" + string(e.Code) + ".md" }

//go:embed findings.json
var registryFile []byte

// Registry lists every code in the order of its file. The slice belongs to the caller. It panics when the embedded file is
// broken, which the tests exclude.
//
// It is parsed at each call, which takes microseconds and spares the package a variable that somebody could change.
func Registry() []Entry {
	var all []Entry
	if err := json.Unmarshal(registryFile, &all); err != nil {
		panic(fmt.Sprintf("diagnose: embedded findings.json: %v", err))
	}
	return all
}

// Explain finds one code; false: no such code.
func Explain(code Code) (Entry, bool) {
	all := Registry()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Code == code })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Page writes the documentation page of a code as Markdown.
//
// The files in docs/findings are written by it and compared with it by a test, so that page, program and JSON say the
// same.
func Page(e Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n*%s*\n\n%s\n", e.Code, e.Title, e.Meaning)
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, text)
		}
	}
	section("How it shows", e.Shows)
	section("Easily confused with", e.ConfusedWith)
	section("What to do", e.Remedy)
	if !e.Rule {
		b.WriteString("\nThis version has no rule for this code yet; the name is reserved.\n")
	}
	return b.String()
}
