package sys

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEchoRefused checks that a missing permission comes with a hint, and a missing ability without
// one.
func TestEchoRefused(t *testing.T) {
	for _, c := range []struct {
		raw                   error
		permission, supported bool
	}{
		{unix.EPERM, true, true},
		{unix.EMFILE, false, true},
		{unix.EPROTONOSUPPORT, false, false},
	} {
		err := echoError(unix.EACCES, c.raw)
		var hinted interface{ Hint() string }
		hint := ""
		if errors.As(err, &hinted) {
			hint = hinted.Hint()
		}
		if errors.Is(err, fs.ErrPermission) != c.permission ||
			strings.Contains(hint, "net.ipv4.ping_group_range") != c.permission ||
			errors.Is(err, ErrNotSupported) == c.supported {
			t.Errorf("%v: %v, hint %q", c.raw, err, hint)
		}
	}
}
