package advice

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGeneratedArchive compares the archive with the files that it is made of, and makes it with
// -update. It compares contents, because the compressed bytes depend on the version of Go.
func TestGeneratedArchive(t *testing.T) {
	names, err := filepath.Glob("facts/*")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(name)] = string(b)
	}
	have, err := unpack(packed)
	diff := cmp.Diff(want, have)
	switch {
	case err == nil && diff == "":
	case *update:
		if err := os.WriteFile("facts.tar.gz", archived(t, "facts"), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("make gen packs the facts (-files +archive): %v\n%s", err, diff)
	}
}

// archived returns a folder as an archive that depends on names and contents alone.
func archived(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	for _, err := range []error{err, w.Close(), z.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
