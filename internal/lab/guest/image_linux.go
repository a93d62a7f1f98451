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

// unpackImage returns the kernel of a directory as an ELF file, which QEMU starts by its PVH entry.
// It unpacks the kernel once, because an emulated processor needs three seconds of the host's time
// for that at each boot, more than for anything else before the kernel's first line. A kernel in
// another format is returned unchanged and unpacks itself.
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
	// Renamed when it is complete: other processes use the file as soon as it exists.
	if err := os.WriteFile(image+".new", elf, 0o644); err != nil {
		return "", err
	}
	return image, os.Rename(image+".new", image)
}

// payload unpacks the kernel in a bzImage (Documentation/arch/x86/boot.rst). It returns nil if the
// image has no xz stream with an ELF file. Bytes that look like the beginning of a stream may
// precede the stream; its size and padding follow it.
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
