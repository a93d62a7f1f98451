package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Free reports whether a capture can be written to a file. It returns fs.ErrExist if that would
// replace a file and force is false.
func Free(name string, force bool) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write capture: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("write capture %s: it exists and is not a file", name)
	case !force:
		return fmt.Errorf("write capture %s: %w", name, fs.ErrExist)
	}
	return nil
}

// Save writes the capture beside its place and moves it there, so that a full disk leaves no
// partial file and destroys no existing one. Only its owner may read it until they send it.
func (c *Capture) Save(name string, force bool) (err error) {
	beside, err := os.CreateTemp(filepath.Dir(name), ".linerate-capture-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(beside.Name()) // The first error is the one to report.
		}
	}()
	_, err = c.WriteTo(beside)
	if err = errors.Join(err, beside.Close()); err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	// Another process may have created a file of that name meanwhile. A hard link cannot replace
	// it; a rename would.
	if !force {
		if err = os.Link(beside.Name(), name); err == nil {
			return os.Remove(beside.Name())
		}
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("write capture %s: %w", name, fs.ErrExist)
		}
		// File systems without hard links (FAT): check once more, then rename.
		if err = Free(name, force); err != nil {
			return err
		}
	}
	if err = os.Rename(beside.Name(), name); err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	return nil
}
