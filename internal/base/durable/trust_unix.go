//go:build unix && !aix

package durable

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links the kernel follows in one name (path_resolution(7)).
const maxLinks = 40

// trusted follows a name as the kernel does, and checks each directory and each symbolic link on
// the way: the owner of a link decides where it leads, and so does the owner of the directory that
// holds it.
func trusted(name string) error {
	name, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	who := friends()
	if _, err := who.check("/", true); err != nil {
		return err
	}
	at, links := "/", 0
	for rest := components(name); len(rest) > 0; {
		child, upper := filepath.Join(at, rest[0]), len(rest) > 1
		if rest = rest[1:]; child == at || filepath.Dir(at) == child {
			at = child // "." or "..": checked on the way here
			continue
		}
		mode, err := who.check(child, upper)
		if err != nil {
			return err
		}
		if mode.Type() != fs.ModeSymlink {
			at = child
			continue
		}
		target, err := os.Readlink(child)
		if err != nil {
			return err
		}
		if links++; links > maxLinks {
			return &fs.PathError{Op: "follow", Path: name, Err: syscall.ELOOP}
		}
		rest = append(components(target), rest...)
		if filepath.IsAbs(target) {
			at = "/"
		}
	}
	return nil
}

// components returns the parts of a name.
func components(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// owners are the users who may own what is trusted.
type owners struct {
	uids []int
	// the files of account names; tests have others
	passwd, group string
}

// friends returns root, this process's user and, inside a user namespace, the user that stands for
// every one outside: a process there sees that user as the owner of /.
func friends() owners {
	o := owners{[]int{0, os.Geteuid()}, "/etc/passwd", "/etc/group"}
	if m, err := os.ReadFile("/proc/self/uid_map"); err == nil {
		if f := strings.Fields(string(m)); len(f) != 3 || f[0] != "0" || f[1] != "0" || f[2] != "4294967295" {
			overflow := 65534
			if b, err := os.ReadFile("/proc/sys/fs/overflowuid"); err == nil {
				if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32); err == nil {
					overflow = int(n)
				}
			}
			o.uids = append(o.uids, overflow)
		}
	}
	return o
}

// check looks at one name, and returns its mode. In an upper directory with the sticky bit, like
// /tmp, users replace only what they own.
func (o owners) check(path string, upper bool) (fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	mode := info.Mode()
	uid, gid, known := Owner(info)
	if !known {
		return mode, nil
	}
	switch {
	case !slices.Contains(o.uids, uid):
		return mode, &TrustError{path, fmt.Sprintf("belongs to user %d, who can change it", uid)}
	case mode.Type() == fs.ModeSymlink || upper && mode&fs.ModeSticky != 0:
		return mode, nil
	case mode.Perm()&0o002 != 0:
		return mode, &TrustError{path, fmt.Sprintf("every user can change it (mode %04o)", mode.Perm())}
	case mode.Perm()&0o020 != 0 && !o.own(gid):
		return mode, &TrustError{path, fmt.Sprintf("group %d can change it (mode %04o)", gid, mode.Perm())}
	}
	return mode, nil
}

// own reports whether a group is known to have no member but the trusted users: the private group
// of a user, or staff on Debian, which owns /usr/local and is empty.
func (o owners) own(gid int) bool {
	accounts, err := os.ReadFile(o.passwd)
	if err != nil {
		return false
	}
	groups, err := os.ReadFile(o.group)
	if err != nil {
		return false
	}
	want, friend := strconv.Itoa(gid), map[string]bool{}
	for _, f := range records(accounts, 4) {
		uid, err := strconv.ParseUint(f[2], 10, 32)
		friend[f[0]] = err == nil && slices.Contains(o.uids, int(uid))
		if f[3] == want && !friend[f[0]] {
			return false
		}
	}
	for _, f := range records(groups, 4) {
		if f[2] != want {
			continue
		}
		for member := range strings.SplitSeq(f[3], ",") {
			if member != "" && !friend[member] {
				return false
			}
		}
		return true
	}
	return false // from a directory service: its members are not known here
}

// records returns the lines of a file like passwd(5) with at least n fields.
func records(data []byte, n int) [][]string {
	var all [][]string
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if f := strings.Split(lines.Text(), ":"); len(f) >= n {
			all = append(all, f)
		}
	}
	return all
}
