package route

import (
	"net/netip"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// TCPMetrics lists the hosts of which the kernel remembers something of earlier TCP connections (ip
// tcp_metrics show): round trip, reordering, slow-start threshold, a Fast Open cookie. New
// connections to such a host begin with that. It is state and not a setting: the kernel fills it by
// itself and forgets it by itself after an hour.
func (c Client) TCPMetrics() ([]netip.Addr, error) {
	v, err := c.k.tcpMetrics()
	return v, nl.Wrap("list TCP metrics", "", err)
}

// ForgetTCPMetrics makes the kernel forget what it remembers of one host, so that the next
// connection begins as the first one did. Nothing remembered is no error. It needs CAP_NET_ADMIN in
// the first user namespace: in that of an ordinary user's world it is fs.ErrPermission.
func (c Client) ForgetTCPMetrics(host netip.Addr) error {
	return nl.Wrap("forget TCP metrics of", host.String(), c.k.forgetTCPMetrics(host.Unmap().WithZone("")))
}
