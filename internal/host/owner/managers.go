package owner

import (
	"io/fs"
	"maps"
)

// Managers lists the programs that bring interfaces up. In an image no program runs, so it lists
// those that are installed. hidden reports that /proc does not show the processes of the host: then
// only those are listed that systemd runs, or that have left a mark.
func Managers(root fs.FS, live bool) (names []string, hidden bool) {
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
	running := make(map[string]bool)
	if live {
		if running, hidden = runningPrograms(root); hidden {
			maps.Copy(running, Served(tree.Exists))
		}
	}
	for _, found := range Find(tree, running) {
		names = append(names, found.Name)
	}
	if !live && (tree.Exists("usr/sbin/NetworkManager") || tree.Exists("usr/bin/NetworkManager")) {
		names = append(names, "NetworkManager")
	}
	return names, hidden
}

// runningPrograms returns the names of the processes that Find looks for. hidden reports that /proc
// shows not even process 1, which every process namespace has (hidepid of proc(5), or no mount).
func runningPrograms(root fs.FS) (running map[string]bool, hidden bool) {
	wanted := Processes()
	running = make(map[string]bool)
	names, _ := fs.Glob(root, "proc/[0-9]*/comm") // the pattern is well formed
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue // The process has ended.
		}
		if program := string(text[:max(len(text)-1, 0)]); wanted[program] {
			running[program] = true
		}
	}
	_, err := fs.ReadFile(root, "proc/1/comm")
	return running, err != nil
}
