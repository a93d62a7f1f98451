package advice

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"os"
	"testing"
)

// TestGeneratedArchive holds the archive to the directory facts. It compares what is in them: the
// compressed bytes may change with the version of Go.
func TestGeneratedArchive(t *testing.T) {
	entries, err := os.ReadDir("facts")
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		text, err := os.ReadFile("facts/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		want[e.Name()] = string(text)
		err = archive.WriteHeader(&tar.Header{Name: e.Name(), Mode: 0o644, Size: int64(len(text))})
		if _, wrote := archive.Write(text); err != nil || wrote != nil {
			t.Fatal(err, wrote)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	if back, err := unpack(b.Bytes()); err != nil || !maps.Equal(back, want) {
		t.Fatalf("an archive of %d files was written, and %d read: %v", len(want), len(back), err)
	}
	if *update {
		if err := os.WriteFile("facts.tar.gz", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !maps.Equal(factFiles(), want) {
		t.Error("facts.tar.gz is not the directory facts; run make gen")
	}
}

// TestUnpackBroken: an archive that is cut or changed is an error and not a part of the facts.
func TestUnpackBroken(t *testing.T) {
	for _, n := range []int{0, 5, 100, len(packed) / 2, len(packed) - 1} {
		if all, err := unpack(packed[:n]); err == nil {
			t.Errorf("the first %d bytes gave %d files", n, len(all))
		}
	}
	changed := bytes.Clone(packed)
	changed[len(changed)/2] ^= 1
	if _, err := unpack(changed); err == nil {
		t.Error("a changed byte was not noticed")
	}
}
