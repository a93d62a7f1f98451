package guest

import (
	"fmt"
	"io"
	"io/fs"
	"math"
)

// file is one entry of an initramfs. The caller of writeArchive adds its directories, because the
// kernel does not make them.
type file struct {
	name string      // without a leading slash
	mode fs.FileMode // permission bits and fs.ModeDir or fs.ModeSymlink
	data []byte      // of a link: where it points
}

// Types of files in the mode word of cpio, the same as in stat(2).
const (
	typeRegular   = 0o100000
	typeDirectory = 0o040000
	typeLink      = 0o120000
)

// endOfArchive is the name of the last entry.
const endOfArchive = "TRAILER!!!"

// writeArchive writes a cpio archive in the format "newc", which the kernel unpacks: for every file
// a header of ASCII digits, its name and its content, each padded to four bytes. All files belong
// to root and have the time 0.
func writeArchive(w io.Writer, files []file) error {
	for i, f := range append(files, file{name: endOfArchive}) {
		if err := writeEntry(w, i+1, f); err != nil {
			return fmt.Errorf("write archive: %s: %w", f.name, err)
		}
	}
	return nil
}

// writeEntry writes one file. Equal inode numbers would mark hard links, so every file has its own.
func writeEntry(w io.Writer, inode int, f file) error {
	if len(f.data) > math.MaxUint32 {
		return fmt.Errorf("%d bytes: the format holds 32 bits", len(f.data))
	}
	kind := typeRegular
	switch {
	case f.mode&fs.ModeDir != 0:
		kind = typeDirectory
	case f.mode&fs.ModeSymlink != 0:
		kind = typeLink
	}
	name := f.name + "\x00"
	// Magic, then 13 numbers: ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor,
	// rdevmajor, rdevminor, namesize, check.
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		inode, kind|int(f.mode.Perm()), 0, 0, 1, 0, len(f.data), 0, 0, 0, 0, len(name), 0)
	for _, part := range []string{header + name, string(f.data)} {
		if _, err := io.WriteString(w, part+"\x00\x00\x00"[:-len(part)&3]); err != nil {
			return err
		}
	}
	return nil
}
