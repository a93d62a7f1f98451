package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Draft is a file of the operating system that gets its name when it is complete: a full disk or a
// killed process leaves neither half of a file under the name nor a lost older file. Where the
// system can make a file without a name (Linux, most file systems), a process killed before Publish
// leaves nothing at all; elsewhere it leaves a file that begins with a dot.
type Draft struct {
	file *os.File
	name string // what it will be
	temp string // its name until then; empty: it has none
	done bool
}

// NewDraft begins the file name, in its directory, with exactly these permissions. Its errors, and
// those of the methods, match those of package io/fs; none has a name, so that callers add theirs.
func NewDraft(name string, perm fs.FileMode) (*Draft, error) {
	return newDraft(name, perm, openUnnamed)
}

func newDraft(name string, perm fs.FileMode, open func(dir string) (*os.File, error)) (*Draft, error) {
	d := &Draft{name: name}
	var err error
	if d.file, err = open(filepath.Dir(name)); err != nil {
		if d.file, err = os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*"); err != nil {
			return nil, withoutName(err)
		}
		d.temp = d.file.Name()
	}
	if err := d.file.Chmod(perm); err != nil {
		d.Discard()
		return nil, withoutName(err)
	}
	return d, nil
}

// Write implements [io.Writer].
func (d *Draft) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	return n, withoutName(err)
}

// Chown gives the file to a user and a group. Only root may give one to another user.
func (d *Draft) Chown(uid, gid int) error { return withoutName(d.file.Chown(uid, gid)) }

// Publish gives the file its name once its bytes are on the disk, syncs the directory, and ends the
// draft. Without replace it returns fs.ErrExist if another file has the name, even one made
// meanwhile.
func (d *Draft) Publish(replace bool) error {
	if d.done {
		return os.ErrClosed
	}
	defer d.Discard() // after a success there is nothing to discard
	if err := d.publish(replace); err != nil {
		return err
	}
	return withoutName(syncDirOS(filepath.Dir(d.name)))
}

func (d *Draft) publish(replace bool) error {
	// A new name must not appear before the bytes are on the disk.
	if err := d.file.Sync(); err != nil {
		return withoutName(err)
	}
	if !replace {
		return d.link()
	}
	if d.temp == "" {
		// A link replaces no file, so the draft needs a name of its own to be renamed from.
		d.temp = filepath.Join(filepath.Dir(d.name), fmt.Sprintf(".%s.%d", filepath.Base(d.name), os.Getpid()))
		_ = os.Remove(d.temp) // of a killed process that had this number
		if err := nameFile(d.file, d.temp); err != nil {
			return err
		}
	}
	if err := d.file.Close(); err != nil { // NFS and quotas report a full disk here; Windows renames no open file
		return withoutName(err)
	}
	return d.rename()
}

// link names the file unless the name is taken. A link cannot replace a file that another process
// made meanwhile; a rename would.
func (d *Draft) link() error {
	if d.temp == "" {
		err := nameFile(d.file, d.name)
		return withoutName(errors.Join(err, d.file.Close()))
	}
	if err := d.file.Close(); err != nil {
		return withoutName(err)
	}
	err := os.Link(d.temp, d.name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return withoutName(err)
	}
	// File systems without hard links (FAT): look, then rename.
	if _, err := os.Lstat(d.name); err == nil {
		return fs.ErrExist
	}
	return d.rename()
}

func (d *Draft) rename() error {
	if err := renameOS(d.temp, d.name); err != nil {
		return withoutName(err)
	}
	d.temp = "" // gone
	return nil
}

// Discard removes a draft that has not been published. Further calls do nothing.
func (d *Draft) Discard() {
	if d.done {
		return
	}
	d.done = true
	_ = d.file.Close() // closed already after Publish
	if d.temp != "" {
		_ = os.Remove(d.temp) // what stays begins with a dot
	}
}

// withoutName leaves out the temporary name, which means nothing to a user.
func withoutName(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
