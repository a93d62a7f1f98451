// Command manual writes the manual pages and the shell completions of built programs.
//
//	manual -o DIR [-date YYYY-MM-DD] PROGRAM...
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
	"strings"
)

func main() {
	out := flag.String("o", "", "directory of the pages and completions")
	date := flag.String("date", "", "date of the pages, as in 2026-11-26")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "manual: usage: manual -o DIR [-date YYYY-MM-DD] PROGRAM...")
		os.Exit(2)
	}
	for _, program := range flag.Args() {
		if err := write(*out, program, *date); err != nil {
			fmt.Fprintf(os.Stderr, "manual: %v\n", err)
			os.Exit(1)
		}
	}
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
