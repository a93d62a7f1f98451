// Command manual writes the manual pages and the shell completions of built programs.
//
//	manual -o DIR [-date YYYY-MM-DD] PROGRAM...
//
// Every page has a date, the same in each build of one source: that of -date, of SOURCE_DATE_EPOCH
// (reproducible-builds.org), or of the newest release in CHANGELOG.md of the present directory.
//
// It asks the programs themselves for their help, so a page cannot differ from the program: one
// page of section 1 for each command, one of section 7 for each topic of `PROGRAM help`. DIR/man
// gets the pages, DIR/completions the files of bash, zsh, fish and PowerShell. `make install` and
// `make release` call it. It is no part of the programs, which have to be small.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "", "directory of the pages and completions")
	date := flag.String("date", "", "date of the pages, as in 2026-11-26 (default: SOURCE_DATE_EPOCH, or of CHANGELOG.md)")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "manual: usage: manual -o DIR [-date YYYY-MM-DD] PROGRAM...")
		os.Exit(2)
	}
	if *date == "" {
		var err error
		if *date, err = dateOf(os.Getenv("SOURCE_DATE_EPOCH"), "CHANGELOG.md"); err != nil {
			fmt.Fprintf(os.Stderr, "manual: %v\n", err)
			os.Exit(1)
		}
	}
	for _, program := range flag.Args() {
		if err := write(*out, program, *date); err != nil {
			fmt.Fprintf(os.Stderr, "manual: %v\n", err)
			os.Exit(1)
		}
	}
}

// releaseHead is the head of a release in a changelog, newest first.
var releaseHead = regexp.MustCompile(`(?m)^## \S+ — (\d{4}-\d\d-\d\d)$`)

// dateOf returns the date of pages whose caller gives none: of an epoch in seconds, or of the
// newest release in a changelog.
func dateOf(epoch, changelog string) (string, error) {
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return "", fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
	}
	text, err := os.ReadFile(changelog)
	if err != nil {
		return "", fmt.Errorf("no date: give -date or SOURCE_DATE_EPOCH: %w", err)
	}
	if m := releaseHead.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	return "", fmt.Errorf("no date: %s has no release; give -date or SOURCE_DATE_EPOCH", changelog)
}

// write writes all files of one program.
func write(out, program, date string) error {
	m := manual{name: filepath.Base(program), date: date, pages: make(map[string]string)}
	m.ask = func(args ...string) (string, error) {
		c := exec.Command(program, args...)
		c.Env = []string{"NO_COLOR=1", "HOME=/nonexistent"}
		c.Stderr = os.Stderr
		text, err := c.Output()
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", m.name, strings.Join(args, " "), err)
		}
		return string(text), nil
	}
	if err := m.all(); err != nil {
		return err
	}
	files := make(map[string]string)
	for name, text := range m.pages {
		files[filepath.Join("man", name)] = text
	}
	for shell, name := range map[string]string{
		"bash": m.name, "zsh": "_" + m.name, "fish": m.name + ".fish", "powershell": m.name + ".ps1",
	} {
		text, err := m.ask("completion", shell)
		if err != nil {
			return err
		}
		files[filepath.Join("completions", shell, name)] = text
	}
	for name, text := range files {
		name = filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
