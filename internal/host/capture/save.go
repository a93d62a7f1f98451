package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/linerate/linerate/internal/base/durable"
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

// Save writes the capture, and replaces a file only if force is true; otherwise it returns
// fs.ErrExist. Only its owner may read it until they send it.
func (c *Capture) Save(name string, force bool) error {
	file, err := durable.NewDraft(name, 0o600)
	if err == nil {
		defer file.Discard()
		if _, err = c.WriteTo(file); err == nil {
			err = file.Publish(force)
		}
	}
	if err != nil {
		return fmt.Errorf("write capture %s: %w", name, err)
	}
	return nil
}
