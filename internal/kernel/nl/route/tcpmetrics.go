package route

import (
	"net/netip"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// ForgetTCPMetrics deletes what the kernel caches of one host from earlier TCP connections (ip
// tcp_metrics show): round-trip time, reordering, slow-start threshold, a Fast Open cookie. The
// next connection then starts as the first one did. It returns nil if the kernel has none. It needs
// CAP_NET_ADMIN in the initial user namespace; in an unprivileged user's lab world the error is
// fs.ErrPermission.
func (c Client) ForgetTCPMetrics(host netip.Addr) error {
	return nl.Wrap("forget TCP metrics of", host.String(), c.k.forgetTCPMetrics(host.Unmap().WithZone("")))
}
