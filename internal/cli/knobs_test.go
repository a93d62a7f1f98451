package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestKnobsPrintsSettings gives each line that `knobs --current` prints about this host to a shell,
// and the word that comes out to the parser of `linerate set`: the line must be one setting with
// the value that was read.
func TestKnobsPrintsSettings(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	var doc, out, errs bytes.Buffer
	if status := Main([]string{"linerate", "knobs", "--current"}, nil, &out, &errs); status != exitOK {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	var script strings.Builder
	for line := range strings.Lines(out.String()) {
		script.WriteString("printf '%s\\n' " + line)
	}
	words, err := exec.Command(sh, "-c", script.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	printed := map[knob.ID]knob.Value{}
	for word := range strings.Lines(string(words)) {
		if word = strings.TrimSuffix(word, "\n"); word == "" {
			continue // the line was a comment
		}
		settings, err := parseSettings([]string{word})
		if err != nil {
			t.Errorf("set does not take %q: %v", word, err)
			continue
		}
		printed[settings[0].Knob] = settings[0].Value
	}
	if Main([]string{"linerate", "knobs", "--current", "--json"}, nil, &doc, &errs) != exitOK || len(printed) == 0 {
		t.Fatalf("%d settings, %s", len(printed), errs.String())
	}
	for id, value := range printed {
		// Statistics such as the number of free ports change; settings of this host do not.
		if !bytes.Contains(doc.Bytes(), []byte(`"knob":"`+string(id)+`","value":`)) {
			t.Errorf("%s=%s is not in the document", id, value)
		}
	}
}
