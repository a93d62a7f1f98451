package route

import (
	"testing"

	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// The tests of this package must pass on Debian's kernel too.
func TestGuestOtherKernel(t *testing.T) { guesttest.Others(t, "^TestNetns") }
