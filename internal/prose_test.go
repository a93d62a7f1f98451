package internal_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mannerism is a turn of phrase that the project's English avoids.
type mannerism struct {
	pattern *regexp.Regexp
	instead string
}

// anyOf matches a line that has at least one of the mannerisms. One pass with it costs a twentieth
// of a pass with each.
func anyOf(list []mannerism) *regexp.Regexp {
	patterns := make([]string, len(list))
	for i, m := range list {
		patterns[i] = m.pattern.String()
	}
	return regexp.MustCompile(strings.Join(patterns, "|"))
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
		all = append(all, mannerism{regexp.MustCompile("(?i)" + pattern), instead})
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
	some := anyOf(list)
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
		for _, problem := range read(rel, src, list, some) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the mannerisms in one file, a sentence each.
func read(name string, src []byte, list []mannerism, some *regexp.Regexp) []string {
	lines := prose(name, src)
	if !some.MatchString(strings.Join(slices.Collect(maps.Values(lines)), "\n")) {
		return nil
	}
	var problems []string
	for line, text := range lines {
		for _, m := range list {
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
		if got := read(c.name, []byte(c.src), list, anyOf(list)); len(got) != c.want {
			t.Errorf("%s %q: %q, want %d problems", c.name, c.src, got, c.want)
		}
	}
}
