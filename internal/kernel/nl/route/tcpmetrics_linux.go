package route

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// From linux/tcp_metrics.h; x/sys/unix lacks them. Addresses are in network byte order.
const (
	tcpMetricsFamily = "tcp_metrics"

	tcpMetricsGet, tcpMetricsDelete = 1, 2

	tcpMetricsIPv4, tcpMetricsIPv6 = 1, 2
)

// tcpMetrics reads the whole cache of the namespace.
func (k kernel) tcpMetrics() ([]netip.Addr, error) {
	msgs, err := k.askTCPMetrics(tcpMetricsGet, netlink.Request|netlink.Dump, nil)
	if err != nil {
		return nil, err
	}
	var hosts []netip.Addr
	for _, m := range msgs {
		host, err := parseTCPMetrics(m.Data)
		if err != nil {
			return nil, err
		}
		if host.IsValid() {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// parseTCPMetrics returns the host of an entry, or the zero Addr if the entry has no known kind of
// address.
func parseTCPMetrics(data []byte) (host netip.Addr, err error) {
	ad, err := nl.Attributes(data, 0)
	if err != nil {
		return host, fmt.Errorf("TCP metrics message: %w", err)
	}
	for ad.Next() {
		switch ad.Type() {
		case tcpMetricsIPv4, tcpMetricsIPv6:
			if a, ok := netip.AddrFromSlice(ad.Bytes()); ok {
				host = a
			}
		}
	}
	return host, ad.Err()
}

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
	_, err = k.askTCPMetrics(tcpMetricsDelete, netlink.Request|netlink.Acknowledge, data)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return nil // the kernel has no entry
	}
	return err
}

func (k kernel) askTCPMetrics(command uint8, flags netlink.HeaderFlags, data []byte) ([]genetlink.Message, error) {
	family, err := k.Family(tcpMetricsFamily)
	if err != nil {
		return nil, err
	}
	return k.Generic(family, command, flags, data)
}
