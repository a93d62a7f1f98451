package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// xzMagic begins an xz stream (The .xz File Format, 2.1.1.1).
var xzMagic = []byte("\xfd7zXZ\x00")

// unpackImage gives the kernel of a directory as an ELF file, which QEMU starts by the entry for
// PVH: unpacking is the larger part of what an emulated processor does until the first line of the
// kernel, and costs three seconds of the host's at each boot. It is done once. A kernel that is
// packed otherwise is given as it is, and unpacks itself.
func unpackImage(ctx context.Context, dir string) (image string, err error) {
	packed, image := filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "vmlinux")
	if _, err := os.Stat(image); !errors.Is(err, fs.ErrNotExist) {
		return image, err
	}
	b, err := os.ReadFile(packed)
	if err != nil {
		return "", err
	}
	elf, err := payload(ctx, b)
	if err != nil || elf == nil {
		return packed, err
	}
	// Whole or not at all: who finds it takes it for whole.
	if err := os.WriteFile(image+".new", elf, 0o644); err != nil {
		return "", err
	}
	return image, os.Rename(image+".new", image)
}

// payload unpacks what a bzImage holds (Documentation/arch/x86/boot.rst), nil if that is no xz
// stream with an ELF file in it. Bytes that look like the beginning of a stream may stand before
// it, and the size of the whole and padding do behind it.
func payload(ctx context.Context, image []byte) ([]byte, error) {
	for at := 0; ; at++ {
		next := bytes.Index(image[at:], xzMagic)
		if next < 0 {
			return nil, nil
		}
		at += next
		elf, err := uncompressed(ctx, image[at:], "--single-stream")
		if ctx.Err() != nil {
			return nil, fmt.Errorf("unpack kernel: %w", context.Cause(ctx))
		}
		if err == nil && bytes.HasPrefix(elf, []byte("\x7fELF")) {
			return elf, nil
		}
	}
}
