package route

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// From linux/tcp_metrics.h; x/sys/unix lacks them. Addresses are in network byte order.
const (
	tcpMetricsFamily = "tcp_metrics"

	tcpMetricsDelete = 2

	tcpMetricsIPv4, tcpMetricsIPv6 = 1, 2
)

// forgetTCPMetrics deletes the entries of one host for all local addresses. Without an address the
// kernel would delete every entry.
func (k kernel) forgetTCPMetrics(host netip.Addr) error {
	if !host.IsValid() {
		return fmt.Errorf("no address: %w", unix.EINVAL)
	}
	attribute := uint16(tcpMetricsIPv6)
	if host.Is4() {
		attribute = tcpMetricsIPv4
	}
	data, err := nl.Encode(nil, func(ae *netlink.AttributeEncoder) { ae.Bytes(attribute, host.AsSlice()) })
	if err != nil {
		return err
	}
	family, err := k.Family(tcpMetricsFamily)
	if err != nil {
		return err
	}
	_, err = k.Generic(family, tcpMetricsDelete, netlink.Request|netlink.Acknowledge, data)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return nil // the kernel has no entry
	}
	return err
}
