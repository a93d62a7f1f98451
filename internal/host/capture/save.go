package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Free tells whether a capture can be written to a file: fs.ErrExist where it would replace one,
// and is not to.
func Free(name string, force bool) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write capture: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("write capture %s: it is there and is no file", name)
	case !force:
		return fmt.Errorf("write capture %s: %w", name, fs.ErrExist)
	}
	return nil
}

// Save writes the capture beside its place and moves it there, so that a full disk leaves no half
// of one, and none where a whole one was. It is for its owner alone until they send it.
func (c *Capture) Save(name string, force bool) (err error) {
	beside, err := os.CreateTemp(filepath.Dir(name), ".linerate-capture-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(beside.Name()) // The first error is the one to tell.
		}
	}()
	_, err = c.WriteTo(beside)
	if err = errors.Join(err, beside.Close()); err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	// Somebody may have made a file of that name meanwhile; a link to it cannot replace it, a
	// renaming would.
	if !force {
		if err = os.Link(beside.Name(), name); err == nil {
			return os.Remove(beside.Name())
		}
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("write capture %s: %w", name, fs.ErrExist)
		}
		// File systems without hard links (FAT) have no such way: look once more, then rename.
		if err = Free(name, force); err != nil {
			return err
		}
	}
	if err = os.Rename(beside.Name(), name); err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	return nil
}
