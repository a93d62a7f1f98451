package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestEveryPattern compiles each expression of the program that waits for its first use, and finds
// those that do not wait: every command pays for them when it starts.
func TestEveryPattern(t *testing.T) {
	compiled := 0
	err := filepath.WalkDir(".", func(dir string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || d.Name() == "testdata" {
			return err
		}
		n := patterns(t, dir)
		compiled += n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if compiled < 150 {
		t.Errorf("%d patterns: the look misses them", compiled)
	}
}

// patterns compiles those of one package and returns how many these are.
func patterns(t *testing.T, dir string) int {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	sources, found := make(map[string][]byte), false
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = src
		found = found || bytes.Contains(src, []byte("pattern.New")) || bytes.Contains(src, []byte("regexp.MustCompile"))
	}
	if !found {
		return 0 // most packages have none, and to parse them costs more than all else
	}
	constants := make(map[string]ast.Expr)
	var calls []ast.Expr
	for name, src := range sources {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			general, isGeneral := decl.(*ast.GenDecl)
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch of := called(call); {
				case of == "pattern.New":
					calls = append(calls, call.Args[0])
				case of == "regexp.MustCompile" && isGeneral:
					t.Errorf("%v: the start of every command compiles this: use pattern.New", set.Position(n.Pos()))
				}
				return true
			})
			if !isGeneral {
				continue
			}
			for _, spec := range general.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && len(value.Values) == len(value.Names) {
					for i, name := range value.Names {
						constants[name.Name] = value.Values[i]
					}
				}
			}
		}
	}
	for _, call := range calls {
		text, ok := constant(call, constants)
		if !ok {
			t.Errorf("%s: a pattern that is no constant", dir)
		} else if _, err := regexp.Compile(text); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	return len(calls)
}

// called returns package and name of the function of a call, "" for another shape.
func called(call *ast.CallExpr) string {
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		if of, ok := f.X.(*ast.Ident); ok {
			return of.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// constant returns the value of an expression of string constants.
func constant(e ast.Expr, constants map[string]ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := constant(e.X, constants)
		right, also := constant(e.Y, constants)
		return left + right, ok && also
	case *ast.ParenExpr:
		return constant(e.X, constants)
	case *ast.Ident:
		return constant(constants[e.Name], constants)
	}
	return "", false
}
