package traffic

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

// NotForgotten begins the warning that a kernel still remembers earlier connections with the other
// host, although a Spec asked it to forget them.
const NotForgotten = "what the kernel remembers of earlier connections with the other host stays"

// forget does what ForgetPeer asks at one end and returns warnings about what failed. The kernel
// keeps this state on its own; it is no setting. Only entries of the other end of this test are
// removed.
func forget(spec Spec, peer string) []string {
	if !spec.ForgetPeer {
		return nil
	}
	host, err := netip.ParseAddr(peer)
	if err == nil {
		err = forgetHost(host)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", NotForgotten, err)}
	}
	return nil
}

func forgetHost(host netip.Addr) error {
	c, err := nl.Dial()
	if err != nil {
		return err
	}
	return errors.Join(route.New(c).ForgetTCPMetrics(host), c.Close())
}
