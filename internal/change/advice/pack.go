package advice

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// packed is the directory facts as a compressed archive, which takes an eighth of the room in the
// program. "make gen" writes it; a test compares it with the files.
//
//go:embed facts.tar.gz
var packed []byte

// factFiles are the files of the directory facts by name. They are unpacked at first use (7 ms).
var factFiles = sync.OnceValue(func() map[string]string {
	all, err := unpack(packed)
	if err != nil {
		// The data is part of this program and its tests unpack it.
		panic("built-in facts: " + err.Error())
	}
	return all
})

// unpack reads a compressed archive of text files.
func unpack(packed []byte) (map[string]string, error) {
	archive, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack archive: %w", err)
	}
	all := make(map[string]string)
	for files := tar.NewReader(archive); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			// The check sum stands behind the last file.
			if _, err := io.Copy(io.Discard, archive); err != nil {
				return nil, fmt.Errorf("unpack archive: %w", err)
			}
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpack archive: %w", err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", h.Name, err)
		}
		all[h.Name] = string(text)
	}
}

// factNames returns the names of these files with an ending, sorted.
func factNames(ending string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(factFiles())),
		func(name string) bool { return !strings.HasSuffix(name, ending) })
}
