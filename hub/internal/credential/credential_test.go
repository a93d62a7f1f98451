package credential

import (
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"encoding/pem"
)

func TestSecret(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	if _, err := Secret(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]string{"abc": "abc", " a b \r\n": "a b", "": "!the file is empty",
		"\n\n": "!the file is empty", strings.Repeat("x", mostOfSecret): strings.Repeat("x", mostOfSecret),
		strings.Repeat("x", mostOfSecret+1): "!more than 65536 bytes"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Secret(name)
		if want, wrong := strings.CutPrefix(want, "!"); wrong {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%.10q: %v, want an error with the name and %q", text, err, want)
			}
		} else if err != nil || got != want {
			t.Errorf("%.10q: %.10q, %v", text, got, err)
		}
	}
}

func TestAuthorities(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	if pool, err := Authorities(name); err != nil || pool == nil {
		t.Errorf("one certificate: %v", err)
	}
	if err := os.WriteFile(name, []byte("-----BEGIN NOTHING-----"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Authorities(name); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("no certificate: %v", err)
	}
}
