package bootconf

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// tunedDirs hold profiles: the administrator's first, and the new location before the old one
// (TuneD 2.23 introduced profiles/).
var tunedDirs = []string{"etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"}

// Profiles returns the names of the TuneD profiles of a host, sorted.
func Profiles(root fs.FS) []string {
	var names []string
	for _, dir := range tunedDirs {
		files, _ := fs.Glob(root, dir+"/*/tuned.conf") // the pattern is valid
		for _, file := range files {
			names = append(names, path.Base(path.Dir(file)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ProfileFiles returns the files of a TuneD profile in the order in which TuneD applies them: those
// that it includes, and then itself, each once, because two may include each other by mistake. The
// profile is a name, or the path of a tuned.conf in root; what a file outside of TuneD's
// directories includes may also be beside its own directory. A profile that is not there has no
// file. The names of included profiles that are not there are missing.
func ProfileFiles(root fs.FS, profile string) (files, missing []string) {
	dirs, seen := tunedDirs, map[string]bool{}
	find := func(name string) string {
		for _, dir := range dirs {
			file := path.Join(dir, name, "tuned.conf")
			if !strings.Contains(name, "/") && fs.ValidPath(file) && anyFile(root, file) {
				return file
			}
		}
		return ""
	}
	var add func(file string)
	add = func(file string) {
		if file == "" || seen[file] {
			return
		}
		seen[file] = true
		for _, s := range ini(root, file) {
			if s.name != "main" {
				continue
			}
			between := func(r rune) bool { return strings.ContainsRune(",; ", r) }
			for _, name := range strings.FieldsFunc(s.get("include"), between) {
				// A dash makes it optional (TuneD 2.23).
				bare, optional := strings.CutPrefix(name, "-")
				included := find(bare)
				if included == "" && !optional {
					missing = append(missing, name)
				}
				add(included)
			}
		}
		files = append(files, file)
	}
	if !strings.Contains(profile, "/") {
		add(find(profile))
	} else if fs.ValidPath(profile) && anyFile(root, profile) {
		if beside := path.Dir(path.Dir(profile)); !slices.Contains(tunedDirs, beside) {
			dirs = append([]string{beside}, tunedDirs...)
		}
		add(profile)
	}
	return files, missing
}
