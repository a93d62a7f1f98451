package durable

import (
	"io/fs"
	"os"
	"path/filepath"
)

// ForOwner returns the file system of the operating system for a directory that may belong to
// another user, such as the state of a service that systemd runs as a dynamic user: what root
// creates there belongs to the owner of the directory, who has to read it. systemd gives a whole
// directory to the user of a service only when it changes the owner of the directory itself.
//
// Create makes a file that does not exist: in a directory of another user, an existing one may be a
// link to anywhere. [Replace] calls it so.
func ForOwner() FS { return forOwner{OS()} }

type forOwner struct{ FS }

// Create implements FS.
func (f forOwner) Create(name string, perm fs.FileMode) (File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := giveToOwner(file, filepath.Dir(name)); err != nil {
			_ = file.Close() // the file is empty
			return nil, err
		}
	}
	return file, nil
}

// giveToOwner gives a file to the owner of a directory.
func giveToOwner(file *os.File, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	uid, gid, known := Owner(info)
	if !known {
		return nil
	}
	return file.Chown(uid, gid)
}
