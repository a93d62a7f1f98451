package sys

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEchoRefused: who may not ping is told what lets them; who cannot has nothing to try.
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
		var told interface{ Hint() string }
		hint := ""
		if errors.As(err, &told) {
			hint = told.Hint()
		}
		if errors.Is(err, fs.ErrPermission) != c.permission ||
			strings.Contains(hint, "net.ipv4.ping_group_range") != c.permission ||
			errors.Is(err, ErrNotSupported) == c.supported {
			t.Errorf("%v: %v, hint %q", c.raw, err, hint)
		}
	}
}
