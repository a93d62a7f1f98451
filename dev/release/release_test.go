package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

var day = time.Date(2026, 11, 26, 4, 18, 11, 0, time.UTC)

// TestSignature signs as a release does, twice, and has the signature checked by the library and by
// minisign(1) where that is installed.
func TestSignature(t *testing.T) {
	dir := t.TempDir()
	public, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LINERATE_SIGN_PASSWORD", "of a test")
	text, err := minisign.EncryptKey("of a test", secret)
	if err != nil {
		t.Fatal(err)
	}
	key, pub := filepath.Join(dir, "key"), filepath.Join(dir, "pub")
	out := filepath.Join(dir, "out")
	pubText, err := public.MarshalText()
	if err := errors.Join(err, os.WriteFile(key, text, 0o600), os.WriteFile(pub, append(pubText, '\n'), 0o644),
		os.Mkdir(out, 0o755), os.WriteFile(filepath.Join(out, "a"), []byte("abc"), 0o644)); err != nil {
		t.Fatal(err)
	}
	r := release{out: out, number: "1.2.3", revision: "0123abcd", date: day}
	var first []byte
	for range 2 {
		if err := errors.Join(r.checksums(), r.sign(key)); err != nil {
			t.Fatal(err)
		}
		signature, err := os.ReadFile(filepath.Join(out, sums+".minisig"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = signature
		} else if !bytes.Equal(first, signature) {
			t.Error("two signatures of the same checksums differ")
		}
	}
	list, err := os.ReadFile(filepath.Join(out, sums))
	// The digest of FIPS 180-2 for abc.
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n"
	if err != nil || string(list) != want {
		t.Errorf("checksums: %q, %v, want %q", list, err, want)
	}
	if !minisign.Verify(public, list, first) || minisign.Verify(public, append(list, '\n'), first) {
		t.Error("the signature does not hold, or holds for another text")
	}
	if _, err := exec.LookPath("minisign"); err == nil {
		said, err := exec.Command("minisign", "-V", "-p", pub, "-m", filepath.Join(out, sums)).CombinedOutput()
		if err != nil {
			t.Errorf("minisign: %v: %s", err, said)
		}
	}
}

// TestKeyOutside refuses a key that a commit could take along, also behind a link.
func TestKeyOutside(t *testing.T) {
	tree, elsewhere := t.TempDir(), t.TempDir()
	inside, link := filepath.Join(tree, "key"), filepath.Join(elsewhere, "link")
	good := filepath.Join(elsewhere, "key")
	if err := errors.Join(os.WriteFile(inside, nil, 0o600), os.WriteFile(good, nil, 0o600),
		os.Symlink(inside, link)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{inside, link} {
		if _, err := outside(key, tree); err == nil || !strings.Contains(err.Error(), "within the tree") {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := outside(good, tree); err != nil {
		t.Error(err)
	}
}

// TestSnapshotSortsBehind compares the versions of packages by the rules of the formats.
func TestSnapshotSortsBehind(t *testing.T) {
	tagged := release{number: "0.1.0"}
	later := release{number: "0.1.0", snapshot: "20261126041811"}
	next := release{number: "0.1.1"}
	if got := later.version("rpm") + " " + later.version("apk"); got != "0.1.0^git20261126041811 0.1.0_git20261126041811" {
		t.Error(got)
	}
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg compares the versions of Debian")
	}
	for _, pair := range [][2]release{{tagged, later}, {later, next}} {
		a, b := pair[0].version("deb")+"-1", pair[1].version("deb")+"-1"
		if err := exec.Command("dpkg", "--compare-versions", a, "lt", b).Run(); err != nil {
			t.Errorf("%s is not below %s: %v", a, b, err)
		}
	}
}

// TestPack checks that a tar file depends on its items and the date alone, and names each directory
// once.
func TestPack(t *testing.T) {
	items := []item{{"/usr/bin/a", []byte("1"), 0o755}, {"/usr/share/a/b", []byte("2"), 0o644}}
	one, err := pack(items, day)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(one)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(day) {
			t.Errorf("%s: %+v", h.Name, h)
		}
	}
	if got := strings.Join(names, " "); got != "usr/ usr/bin/ usr/bin/a usr/share/ usr/share/a/ usr/share/a/b" {
		t.Error(got)
	}
}
