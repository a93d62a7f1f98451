package internal_test

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// The widest lines of Go, in runes; a tab counts as one.
const (
	widestCode    = 120
	widestComment = 100
)

// tooWide returns the lines of a Go file that are too wide. Lines within a raw string of several
// lines may be as wide as what they quote; one of a single line can be broken like any other.
func tooWide(name string, src []byte) []string {
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	quoted, comment := map[int]bool{}, map[int]bool{}
	for {
		at, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		position := files.Position(at)
		switch {
		case tok == token.STRING && text[0] == '`':
			for i, lines := 0, strings.Count(text, "\n"); lines > 0 && i <= lines; i++ {
				quoted[position.Line+i] = true
			}
		case tok == token.COMMENT:
			comment[position.Line] = strings.TrimSpace(string(src[lineStart(src, position.Offset):position.Offset])) == ""
		}
	}
	var wide []string
	number := 0
	for line := range strings.Lines(string(src)) {
		number++
		most := widestCode
		if comment[number] {
			most = widestComment
		}
		width := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
		if width > most && !quoted[number] {
			wide = append(wide, fmt.Sprintf("%s:%d: %d columns, at most %d", name, number, width, most))
		}
	}
	return wide
}

// lineStart returns the offset of the first byte of a line.
func lineStart(src []byte, offset int) int { return bytes.LastIndexByte(src[:offset], '\n') + 1 }

// TestWidth holds the widths of lines that CONTRIBUTING.md asks for.
func TestWidth(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		for _, problem := range tooWide(filepath.ToSlash(rel), src) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWidthCanFail shows what counts: code, comments, and not the inside of a raw string.
func TestWidthCanFail(t *testing.T) {
	long := strings.Repeat("x", widestCode)
	for src, want := range map[string]int{
		"package a\n\nvar " + long + " = 1\n":                         1,
		"package a\n\n// " + long[:widestComment-2] + "\n":            1,
		"package a\n\n// " + long[:widestComment-3] + "\n":            0,
		"package a\n\nvar a = `\n" + long + long + "\n`\n":            0,
		"package a\n\nvar a = 1 // " + long[:widestComment-10] + "\n": 0,
	} {
		if got := tooWide("a.go", []byte(src)); len(got) != want {
			t.Errorf("%q: %q, want %d problems", src, got, want)
		}
	}
}
