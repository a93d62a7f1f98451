package advice

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"sync"
)

// packed is the folder facts/ as a tar archive. Plain, its texts would take half a megabyte more of
// the program, whose size has a bound. `make gen` packs them, and a test compares.
//
//go:embed facts.tar.gz
var packed []byte

// knowledge is the content of the files of facts/ by their names.
var knowledge = sync.OnceValue(func() map[string]string {
	files, err := unpack(packed)
	if err != nil {
		// The archive is part of this program and its tests read it.
		panic("built-in facts: " + err.Error())
	}
	return files
})

func unpack(archive []byte) (map[string]string, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		files[h.Name] = string(content)
	}
}

// filesOf yields the files with an extension, in the order of their names.
func filesOf(extension string) iter.Seq2[string, string] {
	return func(yield func(name, content string) bool) {
		for _, name := range slices.Sorted(maps.Keys(knowledge())) {
			if path.Ext(name) == extension && !yield(name, knowledge()[name]) {
				return
			}
		}
	}
}
