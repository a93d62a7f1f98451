// Command valid checks lines that a command printed with --json-lines: each is a whole line and
// valid by its schema, as is a document in it, and the last one is of the kind that is named.
//
//	valid KIND FILE...
//
// KIND is result, error or event (docs/reference/documents.md). The scripts of package cli call it:
// the validator that others wrote reads its own schemas at the start of every process that links
// it, and those scripts start their binary more than a thousand times.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: valid KIND FILE...")
		os.Exit(2)
	}
	for _, name := range os.Args[2:] {
		if err := check(os.Args[1], name); err != nil {
			fmt.Fprintf(os.Stderr, "check %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// check checks the lines of one file.
func check(kind, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var last report.Line
	for line := range strings.Lines(string(text)) {
		last = report.Line{}
		err := errors.Join(reporttest.Validate([]byte(line)), json.Unmarshal([]byte(line), &last))
		if last.Document != nil {
			err = errors.Join(err, reporttest.Validate(last.Document))
		}
		if err == nil && !strings.HasSuffix(line, "\n") {
			err = errors.New("not a whole line")
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, line)
		}
	}
	if string(last.Kind) != kind {
		return fmt.Errorf("the last line is of kind %q, not %s", last.Kind, kind)
	}
	return nil
}
