package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/report/reporttest"
)

// FuzzValidate checks that no input makes the validator panic, and that accepted input stays
// acceptable with blanks around it. The golden documents are the seeds.
func FuzzValidate(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"linerate.error/1","error":"","exit_status":1}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if reporttest.Validate(doc) != nil {
			return
		}
		if err := reporttest.Validate(append([]byte(" \n"), append(doc, '\n')...)); err != nil {
			t.Errorf("accepted, then refused: %v", err)
		}
	})
}
