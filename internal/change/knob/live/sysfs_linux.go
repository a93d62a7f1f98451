package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// sysfs is where a sysfs is mounted.
type sysfs string

// openInterface opens the directory of a network interface. The caller closes it.
//
// A sysfs shows the network namespace in which it was mounted, which need not be that of the
// thread: an "eth0" there may be the host's, while rtnetlink means the container's. Writing it
// would change a foreign interface. So the directory is trusted only when it has the index and the
// address that rtnetlink reports in this thread. Before a write, and where an interface has no
// address, as a loopback, all names must agree as well: bridges of containers have the same
// addresses in every namespace. (Two namespaces that have only a loopback cannot be distinguished;
// their loopbacks have nothing to tune either.)
//
// The directory is opened, not a path, so that a rename between the check and the use changes
// nothing. Interfaces come and go between the two lists: a few attempts keep that from looking like
// another namespace.
func (s sysfs) openInterface(name string, toWrite bool) (dir int, err error) {
	for range 3 {
		link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
		if err != nil {
			return -1, err
		}
		if toWrite || strings.Trim(link.MAC, "0:") == "" {
			same, err := s.sameNames()
			if err != nil {
				return -1, err
			}
			if !same {
				continue
			}
		}
		dir, err := unix.Open(filepath.Join(string(s), "class/net", name),
			unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // gone since the query: rtnetlink will report it
		}
		if isLink(dir, link) {
			return dir, nil
		}
		_ = unix.Close(dir) // a path only: nothing to lose
	}
	return -1, fmt.Errorf("%w: %s shows the interfaces of another network namespace, or is no sysfs",
		knob.ErrNotSupported, s)
}

// sameNames reports whether rtnetlink and sysfs name the same interfaces.
func (s sysfs) sameNames() (bool, error) {
	shown, err := s.interfaces()
	if err != nil {
		return false, err
	}
	links, err := withClient(func(c *nl.Client) ([]nl.Link, error) { return c.Links() })
	return slices.Equal(shown, names(links)), err
}

// interfaces returns the names, sorted. It skips files between the directories (bonding_masters).
func (s sysfs) interfaces() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(s), "class/net"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: no sysfs is mounted at %s", knob.ErrNotSupported, s)
	case err != nil:
		return nil, err
	}
	var out []string
	for _, e := range entries { // sorted by name (os.ReadDir)
		if !e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func names(links []nl.Link) []string {
	out := make([]string, len(links))
	for i, l := range links {
		out[i] = l.Name
	}
	slices.Sort(out)
	return out
}

func isLink(dir int, l nl.Link) bool {
	index, errIndex := readPseudo(dir, "ifindex")
	address, errAddress := readPseudo(dir, "address")
	return errIndex == nil && errAddress == nil &&
		strings.TrimSpace(string(index)) == strconv.Itoa(l.Index) && strings.TrimSpace(string(address)) == l.MAC
}

// readAttribute returns a file of an interface's directory.
func (s sysfs) readAttribute(name, file string) (knob.Value, error) {
	dir, err := s.openInterface(name, false)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(dir) }()
	return readPseudo(dir, file)
}

// writeAttribute sets one.
func (s sysfs) writeAttribute(name, file string, v knob.Value) error {
	dir, err := s.openInterface(name, true)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	return writePseudo(dir, file, v)
}

// checkAttribute reports whether this process may set one.
func (s sysfs) checkAttribute(name, file string) error {
	dir, err := s.openInterface(name, true)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	return checkPseudo(dir, file)
}

// hasDirectory is nil when the interface has a directory of that name.
func (s sysfs) hasDirectory(name, directory string) error {
	dir, err := s.openInterface(name, false)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	var st unix.Stat_t
	return unix.Fstatat(dir, directory, &st, 0)
}
