package guest

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// libraryPath is where ld.so(8) of Debian looks without a cache, the multiarch directories first.
var libraryPath = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
	"/lib", "/usr/lib"}

// programFiles returns the paths of a program of this machine and of its shared libraries. The
// program may be a path or a name. Programs in /usr/sbin and /sbin are found although an ordinary
// user's PATH lacks these directories.
func programFiles(name string) (paths []string, err error) {
	path, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err != nil && !strings.Contains(name, "/") {
			path, err = exec.LookPath(filepath.Join(dir, name))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	seen := map[string]bool{path: true}
	paths = []string{path}
	for i := 0; i < len(paths); i++ {
		needs, err := sharedObjects(paths[i])
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		for _, n := range needs {
			if !seen[n] {
				seen[n] = true
				paths = append(paths, n)
			}
		}
	}
	return paths, nil
}

// sharedObjects returns the loader and the libraries that a program or library names. A statically
// linked program has none.
func sharedObjects(path string) (paths []string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return nil, fmt.Errorf("%s: loader: %w", path, err)
		}
		paths = append(paths, strings.TrimRight(string(b), "\x00"))
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: libraries: %w", path, err)
	}
	first, err := f.DynString(elf.DT_RUNPATH) // where this file's own libraries are looked for first
	if err != nil {
		return nil, fmt.Errorf("%s: path of libraries: %w", path, err)
	}
	var dirs []string
	for _, list := range first {
		dirs = append(dirs, strings.Split(strings.ReplaceAll(list, "$ORIGIN", filepath.Dir(path)), ":")...)
	}
	dirs = append(dirs, libraryPath...)
	for _, l := range libraries {
		found, err := findLibrary(l, dirs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		paths = append(paths, found)
	}
	return paths, nil
}

func findLibrary(name string, dirs []string) (path string, err error) {
	for _, dir := range dirs {
		path = filepath.Join(dir, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
	return "", fmt.Errorf("library %s: %w", name, fs.ErrNotExist)
}
