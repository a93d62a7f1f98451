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
	words   []string // in lower case: every match contains one of them
	instead string
}

// words returns texts of which everything that a pattern matches contains one; nil: there are none.
// To look for a text costs a hundredth of matching the pattern.
func words(re *syntax.Regexp) (all []string) {
	switch re.Op {
	case syntax.OpConcat:
		// The neighbours "t" and "ell|old" make "tell|told", which is rarer than either.
		var run []string
		for _, part := range re.Sub {
			if next := exactly(part); next == nil {
				all, run = rarer(all, run), nil
				all = rarer(all, words(part))
			} else if run = products(run, next); len(run) > 100 {
				return rarer(all, next)
			}
		}
		return rarer(all, run)
	case syntax.OpCapture, syntax.OpPlus:
		return words(re.Sub[0])
	}
	return rarer(nil, exactly(re))
}

// exactly returns all texts that a pattern matches, "" for a boundary; nil: they cannot be listed.
func exactly(re *syntax.Regexp) (all []string) {
	switch re.Op {
	case syntax.OpWordBoundary, syntax.OpEmptyMatch:
		return []string{""}
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture:
		return exactly(re.Sub[0])
	case syntax.OpQuest:
		if one := exactly(re.Sub[0]); one != nil {
			return append(one, "")
		}
	case syntax.OpAlternate:
		for _, part := range re.Sub {
			one := exactly(part)
			if one == nil {
				return nil
			}
			all = append(all, one...)
		}
		return all
	case syntax.OpConcat:
		for _, part := range re.Sub {
			one := exactly(part)
			if one == nil {
				return nil
			}
			all = products(all, one)
		}
		return all
	}
	return nil
}

// products returns each text of one list followed by each of the other. An empty list has the
// empty text.
func products(a, b []string) (all []string) {
	if a == nil {
		return b
	}
	for _, x := range a {
		for _, y := range b {
			all = append(all, x+y)
		}
	}
	return all
}

// rarer returns the list whose shortest text is longer, because an empty text is in every file.
func rarer(a, b []string) []string {
	shortest := func(list []string) (n int) {
		for i, s := range list {
			if i == 0 || len(s) < n {
				n = len(s)
			}
		}
		return n
	}
	if shortest(b) > shortest(a) {
		return b
	}
	return a
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
		found := words(tree)
		if found == nil {
			t.Fatalf("prose.txt: %q matches nothing that can be looked for", pattern)
		}
		all = append(all, mannerism{regexp.MustCompile("(?i)" + pattern), found, instead})
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
		if !slices.ContainsFunc(m.words, func(word string) bool { return strings.Contains(all, word) }) {
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
