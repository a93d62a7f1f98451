package live

import (
	"fmt"
	"io/fs"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// OwnName returns the name of the interface that name is an alternative name of, as ens3 may be one
// of enp0s3; empty when it is none.
//
// The kernel takes such a name where it takes that of an interface. The journal, the files of
// persist and the check for the user's own session know an interface by its own name alone.
func OwnName(name string) string {
	if name == "" {
		return ""
	}
	c, err := nl.Dial()
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }() // nothing is buffered, so that closing cannot lose anything
	if own, err := c.OwnName(name); err == nil && own != name {
		return own
	}
	return ""
}

// OtherName is the error for an interface under a name that is not its own: to linerate, none is
// called so.
type OtherName struct{ Name, Own string }

func (e OtherName) Error() string { return fmt.Sprintf("%s is another name of %s", e.Name, e.Own) }

// Unwrap makes it an fs.ErrNotExist.
func (OtherName) Unwrap() error { return fs.ErrNotExist }

// Hint returns what to do.
func (e OtherName) Hint() string { return "write " + e.Own + ", as linerate inspect does" }
