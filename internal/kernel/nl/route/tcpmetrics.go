package route

import (
	"net/netip"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// TCPMetrics returns the hosts for which the kernel caches metrics of earlier TCP connections (ip
// tcp_metrics show): round-trip time, reordering, slow-start threshold, a Fast Open cookie. New
// connections to such a host start from these. The cache is state, not a setting: the kernel fills
// it and drops entries after an hour.
func (c Client) TCPMetrics() ([]netip.Addr, error) {
	v, err := c.k.tcpMetrics()
	return v, nl.Wrap("list TCP metrics", "", err)
}

// ForgetTCPMetrics deletes the kernel's cached metrics of one host, so that the next connection
// starts as the first one did. It returns nil if the kernel has none. It needs CAP_NET_ADMIN in the
// initial user namespace; in an unprivileged user's lab world the error is fs.ErrPermission.
func (c Client) ForgetTCPMetrics(host netip.Addr) error {
	return nl.Wrap("forget TCP metrics of", host.String(), c.k.forgetTCPMetrics(host.Unmap().WithZone("")))
}
