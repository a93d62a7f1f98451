package traffic

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

// NotForgotten begins the warning that a kernel still remembers earlier connections with the other
// host, though a Spec asked it to forget.
const NotForgotten = "what the kernel remembers of earlier connections with the other host stays"

// forget is ForgetPeer at one end: the warnings of it, if any. What is forgotten is state that the
// kernel keeps of its own accord, and no setting; only entries of the other end of this very test
// are touched.
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
