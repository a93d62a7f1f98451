package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/linerate/linerate/internal/change/journal"
)

// Inside refuses files whose directories lead out of an image by a link: /etc of an image must not
// be that of this host.
func Inside(root string, files []journal.File) error {
	for _, f := range files {
		dir := filepath.Join(root, filepath.Dir(f.Path))
		actual, err := filepath.EvalSymlinks(dir)
		for ; errors.Is(err, fs.ErrNotExist) && dir != root; actual, err = filepath.EvalSymlinks(dir) {
			dir = filepath.Dir(dir)
		}
		if err != nil {
			return fmt.Errorf("persist: nothing written: %w", err)
		}
		if out, err := filepath.Rel(root, actual); err != nil || !filepath.IsLocal(out) {
			return fmt.Errorf("persist: nothing written: %s of the image leads to %s, outside of it",
				filepath.Dir(f.Path), actual)
		}
	}
	return nil
}
