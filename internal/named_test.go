package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist finds each test that a page of evidence or of a decision names. The record of
// runs names tests of its day, and is not read.
func TestNamedTestsExist(t *testing.T) {
	named := make(map[string]string) // test → page
	test := regexp.MustCompile("`(?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*`")
	defined := make(map[string]bool)
	definition := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Za-z0-9]*)\(`)
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != ".." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		page := strings.HasSuffix(path, ".md") && strings.HasPrefix(path, "../docs/") && d.Name() != "tests.md"
		if !page && !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if page {
			for _, name := range test.FindAllString(string(b), -1) {
				named[strings.Trim(name, "`")] = path
			}
			return nil
		}
		for _, found := range definition.FindAllStringSubmatch(string(b), -1) {
			defined[found[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(named) < 50 {
		t.Fatalf("the pages name only %d tests: the pattern misses them", len(named))
	}
	for name, page := range named {
		if !defined[name] {
			t.Errorf("%s names %s, which does not exist", page, name)
		}
	}
}
