package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// pack returns a tar file of items, with their directories, owned by root, as of one date.
func pack(items []item, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := make(map[string]bool)
	for _, i := range items {
		name := strings.TrimPrefix(i.path, "/")
		var dirs []string
		for dir := path.Dir(name); dir != "." && !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			dirs = append(dirs, dir)
		}
		for n := len(dirs) - 1; n >= 0; n-- {
			h := tar.Header{Typeflag: tar.TypeDir, Name: dirs[n] + "/", Mode: 0o755, ModTime: date, Format: tar.FormatUSTAR}
			if err := w.WriteHeader(&h); err != nil {
				return nil, err
			}
		}
		h := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(i.mode), Size: int64(len(i.data)), ModTime: date,
			Format: tar.FormatPAX}
		if i.mode.IsDir() {
			h.Typeflag, h.Name, h.Mode = tar.TypeDir, name+"/", int64(i.mode.Perm())
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(i.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// squeeze returns data as gzip, without a name and a time.
func squeeze(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// archiveName is the name of a target's archive.
func (r *release) archiveName(target string) string {
	return fmt.Sprintf("linerate_%s_%s.tar.gz", r.version(""), strings.ReplaceAll(target, "/", "_"))
}

// archives makes one archive for each target: both programs, manual pages, completions, and the
// units as dist has them, because the user of an archive chooses the place of the programs.
func (r *release) archives() error {
	for _, target := range r.targets {
		var items []item
		for _, p := range r.programs {
			program, err := r.binary(target, p.name)
			if err != nil {
				return err
			}
			program.path = path.Base(program.path)
			items = append(items, program)
		}
		for _, from := range []string{r.work + "/man", r.work + "/completions", r.tree + "/dist", r.tree + "/LICENSE",
			r.tree + "/README.md", r.tree + "/CHANGELOG.md"} {
			err := filepath.WalkDir(from, func(name string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(name)
				rel, relErr := filepath.Rel(filepath.Dir(from), name)
				if relErr != nil {
					return relErr
				}
				items = append(items, item{filepath.ToSlash(rel), data, 0o644})
				return err
			})
			if err != nil {
				return err
			}
		}
		top := "linerate-" + r.version("") + "/"
		for i := range items {
			items[i].path = top + items[i].path
		}
		data, err := pack(items, r.date)
		if err == nil {
			data, err = squeeze(data)
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, r.archiveName(target)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
