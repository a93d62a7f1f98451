package host_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
)

var update = flag.Bool("update", false, "write the golden files anew")

// unpack makes a tree of a text archive: "-- name --" lines start files, "-- name -> target --" is a symbolic link, "-- name/ --" an empty
// directory, and a file called name.hex is written as the bytes of its hexadecimal text, without the ending. What comes before the
// first file is a comment.
func unpack(t testing.TB, archive string) string {
	t.Helper()
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name, content := "", []byte(nil)
	flush := func() {
		if name != "" {
			plant(t, dir, name, content)
		}
		content = nil
	}
	for line := range bytes.Lines(text) {
		trimmed := strings.TrimRight(string(line), "\n")
		if strings.HasPrefix(trimmed, "-- ") && strings.HasSuffix(trimmed, " --") {
			flush()
			name = strings.TrimSuffix(strings.TrimPrefix(trimmed, "-- "), " --")
			continue
		}
		content = append(content, line...)
	}
	flush()
	return dir
}

func plant(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	name, target, isLink := strings.Cut(name, " -> ")
	to := filepath.Join(dir, filepath.FromSlash(name))
	must(os.MkdirAll(filepath.Dir(to), 0o755))
	if isLink {
		must(os.Symlink(target, to))
		return
	}
	if strings.HasSuffix(name, "/") {
		must(os.MkdirAll(to, 0o755))
		return
	}
	if plain, ok := strings.CutSuffix(to, ".hex"); ok {
		b, err := hex.DecodeString(strings.Join(strings.Fields(string(content)), ""))
		must(err)
		to, content = plain, b
	}
	must(os.WriteFile(to, content, 0o644))
}

// result is what a golden file holds: all that is made of one archive.
type result struct {
	Snapshot *host.Snapshot
	Ceilings []host.Ceiling
	Counters *host.Counters
}

// TestArchives reads every archived host and compares everything with its golden file: one new kernel or card is one new archive.
func TestArchives(t *testing.T) {
	archives, err := filepath.Glob("testdata/hosts/*.txtar")
	if err != nil || len(archives) < 4 {
		t.Fatalf("archives: %v %v", archives, err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".txtar")
		t.Run(name, func(t *testing.T) {
			root := host.Root{Dir: unpack(t, archive)}
			var got result
			var err error
			if got.Snapshot, err = root.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			got.Ceilings = host.Ceilings(got.Snapshot)
			if got.Counters, err = root.Counters(); err != nil {
				t.Fatal(err)
			}
			b, err := json.MarshalIndent(got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, '\n')
			golden := filepath.Join("testdata", "hosts", name+".golden.json")
			if *update {
				if err := os.WriteFile(golden, b, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(b)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
			var back result
			if err := json.Unmarshal(b, &back); err != nil {
				t.Errorf("golden does not decode: %v", err)
			}
		})
	}
}
