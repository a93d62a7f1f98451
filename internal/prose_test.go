package internal_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// mannerism is a turn of phrase that the project's English avoids.
type mannerism struct {
	pattern *regexp.Regexp
	literal string // in lower case: no text without it matches
	instead string
}

// literal returns the longest text that everything a pattern matches contains. To look for it costs
// a hundredth of matching the pattern.
func literal(re *syntax.Regexp) (longest string) {
	switch re.Op {
	case syntax.OpLiteral:
		return strings.ToLower(string(re.Rune))
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, part := range re.Sub {
			if l := literal(part); len(l) > len(longest) {
				longest = l
			}
		}
	}
	return longest
}

// mannerisms reads the word list.
func mannerisms(t *testing.T) []mannerism {
	t.Helper()
	b, err := os.ReadFile("testdata/prose.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []mannerism
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, instead, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("prose.txt: no tab in %q", line)
		}
		tree, err := syntax.Parse("(?i)"+pattern, syntax.Perl)
		if err != nil {
			t.Fatalf("prose.txt: %v", err)
		}
		all = append(all, mannerism{regexp.MustCompile("(?i)" + pattern), literal(tree), instead})
	}
	return all
}

// prose returns the parts of a file that people read, by line number: of Go the comments and
// strings, of everything else all of it.
func prose(name string, src []byte) map[int]string {
	lines := make(map[int]string)
	if !strings.HasSuffix(name, ".go") {
		n := 0
		for line := range strings.Lines(string(src)) {
			n++
			lines[n] = line
		}
		return lines
	}
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		at, tok, text := s.Scan()
		switch tok {
		case token.EOF:
			return lines
		case token.COMMENT, token.STRING:
			first := files.Position(at).Line
			for i, part := range strings.Split(text, "\n") {
				lines[first+i] += part + " "
			}
		}
	}
}

// unread are paths whose words are not ours, or quote what to avoid. Directories called testdata,
// with recorded outputs and golden files, are not read either, but for the scripts of commands.
// disk.sh is part of the key under which machines cache a disk, and state.go names a key of a
// stored file.
var unread = regexp.MustCompile(`/vendor/|^CONTRIBUTING.md$|^LICENSE$|^internal/prose_test.go$|` +
	`^internal/lab/guest/disk.sh$|^hub/internal/alert/state.go$|` +
	`\.(sum|mod|svg|png|gz|tar|bz2|xz|css)$`)

// TestProse keeps mannerisms out of comments, strings and documents.
func TestProse(t *testing.T) {
	list := mannerisms(t)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			recorded := d.Name() == "testdata" && rel != "internal/cli/testdata"
			if strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "bin" || recorded {
				return filepath.SkipDir
			}
			return nil
		}
		if unread.MatchString(rel) || !d.Type().IsRegular() {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, problem := range read(rel, src, list) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the mannerisms in one file, a sentence each.
func read(name string, src []byte, list []mannerism) (problems []string) {
	lines := prose(name, src)
	all := strings.ToLower(strings.Join(slices.Collect(maps.Values(lines)), "\n"))
	for _, m := range list {
		if !strings.Contains(all, m.literal) {
			continue
		}
		for line, text := range lines {
			if found := m.pattern.FindString(text); found != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %q: %s", name, line, found, m.instead))
			}
		}
	}
	return problems
}

// TestProseCanFail shows that comments and strings are read, and code is not.
func TestProseCanFail(t *testing.T) {
	list := mannerisms(t)
	for _, c := range []struct {
		name, src string
		want      int
	}{
		{"a.go", "package a\n\n// It tells nothing.\nvar x = 1\n", 1},
		{"a.go", "package a\n\nvar x = \"sent by turns\"\n", 1},
		{"a.go", "package a\n\nvar told = 1\n", 0},
		{"a.md", "nobody knows\n", 1},
		{"a.md", "the server reports it\n", 0},
	} {
		if got := read(c.name, []byte(c.src), list); len(got) != c.want {
			t.Errorf("%s %q: %q, want %d problems", c.name, c.src, got, c.want)
		}
	}
}
