package guest

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

func TestParseOffer(t *testing.T) {
	for _, tc := range []struct{ text, name, version string }{
		{"Package: linux-image-amd64\nVersion: 6.1.192-2\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n",
			"linux-image-6.1.0-56-amd64", "6.1.192-2"},
		{"Depends: initramfs-tools | linux-initramfs-tool, linux-image-6.12.1-amd64 (= 1:6.12.1-1) | linux-image-x\n",
			"linux-image-6.12.1-amd64", "1:6.12.1-1"},
		{"Depends: linux-base (>= 4.3)\n", "", ""},
		{"", "", ""},
	} {
		if name, version := parseOffer(tc.text); name != tc.name || version != tc.version {
			t.Errorf("%q: %q %q; want %q %q", tc.text, name, version, tc.name, tc.version)
		}
	}
}

func FuzzParseOffer(f *testing.F) {
	f.Add("Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n")
	f.Add("Depends: ,|(= \n")
	f.Fuzz(func(t *testing.T, text string) {
		// The name becomes an argument and the name of a directory.
		if name, _ := parseOffer(text); name != "" &&
			(!strings.HasPrefix(name, "linux-image-") || strings.Contains(name, " ")) {
			t.Fatalf("package %q", name)
		}
	})
}

func TestPlace(t *testing.T) {
	for _, tc := range []struct {
		name, to   string
		compressed bool
	}{
		{"./boot/vmlinuz-6.1.0-56-amd64", "vmlinuz", false},
		{"./boot/config-6.1.0-56-amd64", "", false},
		{"./lib/modules/6.1.0-56-amd64/modules.builtin", "modules.builtin", false},
		{"./lib/modules/6.1.0-56-amd64/kernel/drivers/net/vmxnet3/vmxnet3.ko", "modules/vmxnet3.ko", false},
		{"./usr/lib/modules/6.12.1-amd64/kernel/net/8021q/8021q.ko.xz", "modules/8021q.ko", true},
		{"./lib/modules/6.1.0-56-amd64/kernel/drivers/char/hw_random/virtio-rng.ko", "modules/virtio_rng.ko", false},
		{"./lib/modules/6.1.0-56-amd64/kernel/drivers/net/wireless/ath/ath.ko", "", false},
		{"./lib/modules/6.1.0-56-amd64/kernel/sound/soundcore.ko", "", false},
		{"./lib/modules/6.1.0-56-amd64/kernel/drivers/block/virtio_blk.ko", "modules/virtio_blk.ko", false},
		{"./usr/lib/modules/6.12.1-amd64/kernel/fs/mbcache.ko.xz", "modules/mbcache.ko", true},
		{"./lib/modules/6.1.0-56-amd64/kernel/drivers/block/drbd/drbd.ko", "", false},
		{"./lib/modules/6.1.0-56-amd64/modules.order", "", false},
		{"./usr/share/doc/linux-image-6.1.0-56-amd64/copyright", "", false},
	} {
		if to, compressed := place(tc.name); to != tc.to || compressed != tc.compressed {
			t.Errorf("%s: %q %v; want %q %v", tc.name, to, compressed, tc.to, tc.compressed)
		}
	}
}

// The error quotes the program: for a package that apt does not have, the words of apt.
func TestOutput(t *testing.T) {
	_, err := output(t.Context(), "", "sh", "-c", "echo first >&2; echo E: no such package >&2; exit 100")
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 100: E: no such package") {
		t.Error(err)
	}
	if out, err := output(t.Context(), "", "sh", "-c", "echo $LC_ALL"); err != nil || out != "C.UTF-8\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestUncompressed(t *testing.T) {
	pack := exec.Command(testenv.Program(t, "xz"), "-c")
	pack.Stdin = strings.NewReader("a module")
	b, err := pack.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := uncompressed(t.Context(), b); err != nil || string(got) != "a module" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := uncompressed(t.Context(), []byte("plain")); err == nil || !strings.Contains(err.Error(), "xz") {
		t.Errorf("plain text: %v", err)
	}
}

// A program comes with its libraries, each once, and with the loader.
func TestProgramFiles(t *testing.T) {
	testenv.Need(t, testenv.Guest) // only Debian on amd64 has these paths
	paths, err := programFiles("sh")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(paths, " ")
	if !strings.Contains(all, "/sh ") || strings.Count(all, "libc.so.6") != 1 ||
		!strings.Contains(all, "/ld-linux-x86-64.so.2") {
		t.Errorf("files of sh: %q", paths)
	}
	if _, err := programFiles("no-such-program"); err == nil {
		t.Error("a missing program has files")
	}
}

// payload passes over bytes that only look like the beginning of a stream, and ignores the bytes
// after the stream, which belong to the boot loader.
func TestPayload(t *testing.T) {
	elf := append([]byte("\x7fELF"), bytes.Repeat([]byte("kernel"), 1000)...)
	cmd := exec.Command(testenv.Program(t, "xz"), "-c")
	cmd.Stdin = bytes.NewReader(elf)
	packed, err := cmd.Output()
	if err != nil {
		t.Fatalf("xz: %v", err)
	}
	image := slices.Concat([]byte("MZ boot sector "), xzMagic, []byte("no stream"), packed, []byte{0, 1, 2, 3, 0, 0})
	if got, err := payload(t.Context(), image); err != nil || !bytes.Equal(got, elf) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(elf))
	}
	if got, err := payload(t.Context(), []byte("packed by something else")); err != nil || got != nil {
		t.Errorf("%d bytes, %v; want none", len(got), err)
	}
}
