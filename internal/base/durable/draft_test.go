package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
)

func TestDraft(t *testing.T) {
	for kind, begin := range map[string]func(string, fs.FileMode) (*durable.Draft, error){
		"unnamed": durable.NewDraft, "named": durable.NewNamedDraft,
	} {
		for _, c := range []struct {
			name          string
			existing      string // "": the name is free
			meanwhile     bool   // it appears after the draft has begun
			replace, drop bool
			content       string
			err           error
		}{
			{name: "free", content: "new"},
			{name: "free, may replace", replace: true, content: "new"},
			{name: "taken", existing: "old", content: "old", err: fs.ErrExist},
			{name: "taken, may replace", existing: "old", replace: true, content: "new"},
			{name: "taken meanwhile", existing: "old", meanwhile: true, content: "old", err: fs.ErrExist},
			{name: "discarded", existing: "old", drop: true, content: "old"},
		} {
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				dir := t.TempDir()
				name := filepath.Join(dir, "case.jsonl")
				place := func() {
					if c.existing == "" {
						return
					}
					if err := os.WriteFile(name, []byte(c.existing), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if !c.meanwhile {
					place()
				}
				d, err := begin(name, 0o640)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Write([]byte("new")); err != nil {
					t.Fatal(err)
				}
				if c.meanwhile {
					place()
				}
				if c.drop {
					d.Discard()
				} else if err := d.Publish(c.replace); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Errorf("published: %v, want %v", err, c.err)
				} else if err != nil && strings.Contains(err.Error(), dir) {
					t.Errorf("the error has a name that the caller did not give: %v", err)
				}
				d.Discard()
				if err := d.Publish(true); !errors.Is(err, os.ErrClosed) {
					t.Errorf("published again: %v", err)
				}
				b, err := os.ReadFile(name)
				if string(b) != c.content || err != nil {
					t.Errorf("content %q, %v, want %q", b, err, c.content)
				}
				if info, err := os.Stat(name); runtime.GOOS != "windows" && c.content == "new" && info.Mode() != 0o640 {
					t.Errorf("mode %v, %v", info.Mode(), err)
				}
				if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
					t.Errorf("the directory has %v, %v", entries, err)
				}
			})
		}
	}
	nowhere := filepath.Join(t.TempDir(), "missing", "case.jsonl")
	if _, err := durable.NewDraft(nowhere, 0o600); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "/") {
		t.Errorf("in a missing directory: %v", err)
	}
}
