package route

import (
	"testing"

	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// What is held on the kernel of this machine is held on Debian's too.
func TestGuestOtherKernel(t *testing.T) { guesttest.Others(t, "^TestNetns") }
