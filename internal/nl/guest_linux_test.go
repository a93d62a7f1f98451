package nl

import (
	"testing"

	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// What is held on the kernel of this machine is held on Debian's too. One of the tests compares all links of the machine it runs on with what
// ethtool(8) and ip(8) say of them: here these are the cards.
func TestGuestOtherKernel(t *testing.T) {
	guesttest.Others(t, "^TestNetns")
}
