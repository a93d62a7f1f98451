package owner

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Managers lists the programs that bring interfaces up. In an image no program runs, so it lists
// those that are installed.
func Managers(root fs.FS, live bool) []string {
	tree := Tree{
		Exists: func(name string) bool { _, err := fs.Stat(root, name); return err == nil },
		Text:   func(string) string { return "" },
		List: func(name string) []string {
			var names []string
			entries, _ := fs.ReadDir(root, name) // a directory that cannot be read has no marks
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return names
		},
	}
	var names []string
	for _, found := range Find(tree, runningPrograms(live)) {
		names = append(names, found.Name)
	}
	if !live && (tree.Exists("usr/sbin/NetworkManager") || tree.Exists("usr/bin/NetworkManager")) {
		names = append(names, "NetworkManager")
	}
	return names
}

// runningPrograms returns the names of the processes that Find looks for.
func runningPrograms(live bool) map[string]bool {
	wanted, running := Processes(), make(map[string]bool)
	if !live {
		return running
	}
	names, _ := filepath.Glob("/proc/[0-9]*/comm") // the pattern is well formed
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // The process has ended.
		}
		if program := string(text[:max(len(text)-1, 0)]); wanted[program] {
			running[program] = true
		}
	}
	return running
}
