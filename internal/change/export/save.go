package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/linerate/linerate/internal/base/durable"
)

// Place returns where a file goes: a profile is a directory, every other format the one named file.
func (b Bundle) Place(output string, file File) string {
	if b.Format == TuneD {
		return filepath.Join(output, file.Name)
	}
	return output
}

// Save writes complete files, or none if a file is in the way. It replaces another file only with
// force.
func (b Bundle) Save(output string, force bool) error {
	for _, file := range b.Files {
		info, err := os.Lstat(b.Place(output, file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("write export: %w", err)
		case !info.Mode().IsRegular():
			return fmt.Errorf("write export %s: it exists and is not a regular file", b.Place(output, file))
		case !force:
			return fmt.Errorf("write export %s: %w", b.Place(output, file), fs.ErrExist)
		}
	}
	fsys := durable.OS()
	for _, file := range b.Files {
		if b.Format == TuneD {
			if err := durable.MkdirAll(fsys, output, 0o755); err != nil {
				return fmt.Errorf("write export: %w", err)
			}
		}
		if err := durable.Replace(fsys, b.Place(output, file), []byte(file.Content), file.Perm()); err != nil {
			return fmt.Errorf("write export: %w", err)
		}
	}
	return nil
}
