package cli

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// causes are the names whose use makes a command able to end with a status: the constants of
// exit.go, and what other packages return the errors from that exitStatus maps.
var causes = map[int]*regexp.Regexp{
	exitPartial:    regexp.MustCompile(`^exitPartial$`),
	exitFinding:    regexp.MustCompile(`^exitFinding$`),
	exitRolledBack: regexp.MustCompile(`^exitRolledBack$`),
	// Files and sockets may be closed to this user, and a key may be wrong.
	exitNotPermitted: regexp.MustCompile(`^(exitNotPermitted|os\.(Open|OpenRoot|Create|OpenFile|ReadFile)|runs\.In` +
		`|journal\.(Open|History|Repair|RunGuard|SecondLine)|roster\.(File|Follow)|agent\.Serve|` +
		`peer\.Connect|wire\.Listen|atboot\..*` +
		`|lab\.(Up|Run|RunHost)|matrix\..*|loop\.Watch|host\.Root|capture\..*)$`),
	exitLocked:      regexp.MustCompile(`^(exitLocked|journal\.(Open|Repair)|agent\.Serve)$`),
	exitUnreachable: regexp.MustCompile(`^(exitUnreachable|peer\.Connect)$`),
	exitInterrupted: regexp.MustCompile(`(\.Context|^context\.Canceled)$`),
}

// neverEnds are statuses that the source of a command reaches and the command never ends with.
var neverEnds = map[string]map[int]string{
	"linerate serve": {
		exitLocked:      "the client that changes something gets the error of a locked journal",
		exitInterrupted: "Ctrl-C is the normal end",
	},
	"linerate agent": {exitInterrupted: "Ctrl-C is the normal end"},
	"linerate undo":  {exitUnreachable: "what was undone here makes it a partial result"},
}

// TestHelpListsPossibleStatuses compares the statuses that the help of a command lists with those
// that its source can reach: the functions of this package that it calls, and what these use.
func TestHelpListsPossibleStatuses(t *testing.T) {
	source := parseOwnSource(t)
	for _, c := range commands(testTree()) {
		if c.Hidden || c.Name() == "completion" || c.HasParent() && c.Parent().Name() == "completion" ||
			c.Name() == "help" || !c.HasParent() {
			continue
		}
		reached := source.reached(t, c.Short)
		want := []int{exitOK, exitFailed, exitUsage}
		for _, status := range slices.Sorted(maps.Keys(causes)) {
			used := slices.ContainsFunc(slices.Collect(maps.Keys(reached)), causes[status].MatchString)
			if _, never := neverEnds[c.CommandPath()][status]; used && !never {
				want = append(want, status)
			}
		}
		listed := listedStatuses(c)
		if !slices.Equal(listed, want) {
			t.Errorf("the help of %s lists %v, its source can end with %v; Annotations: exits(…) lists them",
				c.CommandPath(), listed, want)
		}
	}
}

// listedStatuses reads the numbers below EXIT STATUS in the help of a command.
func listedStatuses(c *cobra.Command) []int {
	_, table, _ := strings.Cut(c.Long, "\nEXIT STATUS\n")
	var all []int
	for entry := range strings.SplitSeq(table, "·") {
		number, _, _ := strings.Cut(strings.TrimSpace(entry), " ")
		if status, err := strconv.Atoi(number); err == nil {
			all = append(all, status)
		}
	}
	return all
}

// ownSource is the source of this package, without the packages that it imports.
type ownSource struct {
	info     types.Info
	bodies   map[types.Object]*ast.FuncDecl
	commands map[string]*ast.FuncDecl // those that make a command, by its Short
}

func parseOwnSource(t *testing.T) *ownSource {
	t.Helper()
	files := token.NewFileSet()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var own []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, file)
	}
	s := &ownSource{
		info: types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}},
		bodies: map[types.Object]*ast.FuncDecl{}, commands: map[string]*ast.FuncDecl{},
	}
	// Imports are not resolved, so that this takes a moment; what is defined here is.
	config := types.Config{Error: func(error) {}, Importer: importer.ForCompiler(files, "gc", nil)}
	_, _ = config.Check("cli", files, own, &s.info)
	for _, file := range own {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			s.bodies[s.info.Defs[f.Name]] = f
			if short := shortOf(f); short != "" {
				s.commands[short] = f
			}
		}
	}
	return s
}

// shortOf returns the Short of the command that a function makes.
func shortOf(f *ast.FuncDecl) string {
	var short string
	ast.Inspect(f.Body, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Short" && short == "" {
			if text, ok := pair.Value.(*ast.BasicLit); ok {
				short, _ = strconv.Unquote(text.Value)
			}
		}
		return true
	})
	return short
}

// reached returns the names that a command uses: of this package as they are, of another one behind
// that package's name. It does not descend into the functions that make other commands, nor into
// exitStatus, which names every status and makes none of the errors.
func (s *ownSource) reached(t *testing.T, short string) map[string]bool {
	t.Helper()
	f := s.commands[short]
	if f == nil {
		t.Fatalf("no function makes the command %q", short)
	}
	names := map[string]bool{}
	seen := map[*ast.FuncDecl]bool{f: true}
	for todo := []*ast.FuncDecl{f}; len(todo) > 0; todo = todo[1:] {
		ast.Inspect(todo[0].Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok {
					names[of.Name+"."+n.Sel.Name] = true
				}
			case *ast.Ident:
				object := s.info.Uses[n]
				names[n.Name] = true
				if next := s.bodies[object]; next != nil && !seen[next] && shortOf(next) == "" &&
					next.Name.Name != "exitStatus" {
					seen[next] = true
					todo = append(todo, next)
				}
			}
			return true
		})
	}
	return names
}
