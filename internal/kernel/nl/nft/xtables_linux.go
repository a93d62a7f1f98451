package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Options of linux/netfilter_ipv4/ip_tables.h; IPv6 has the same numbers.
const xtGetInfo, xtGetEntries = 64, 65

// Legacy returns the base chains of x_tables (iptables-legacy) of one family, "ip" or "ip6", in the
// network namespace of the calling thread. It asks only for tables that the kernel lists there: a
// question would make it load others.
func Legacy(family string) ([]Chain, error) {
	names, err := os.ReadFile("/proc/thread-self/net/" + family + "_tables_names")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list x_tables chains: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("list x_tables chains: %w", err)
	}
	tables := strings.Fields(string(names))
	if len(tables) == 0 {
		return nil, nil
	}
	// There u64 is aligned to four bytes, which moves the counters and the list.
	if runtime.GOARCH == "386" {
		return nil, fmt.Errorf("list x_tables chains: %w on 386", errors.ErrUnsupported)
	}
	number, domain, level := byte(2), unix.AF_INET, unix.SOL_IP
	if family == "ip6" {
		number, domain, level = 10, unix.AF_INET6, unix.SOL_IPV6
	}
	fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return nil, fmt.Errorf("list x_tables chains: %w", err)
	}
	defer unix.Close(fd)
	var all []Chain
	for _, table := range tables {
		chains, err := legacy(fd, level, number, table)
		if err != nil {
			return all, fmt.Errorf("list x_tables chains: %w", err)
		}
		all = append(all, chains...)
	}
	return all, nil
}

func legacy(fd, level int, family byte, table string) ([]Chain, error) {
	for range attempts {
		head := make([]byte, xtInfoSize)
		copy(head[:31], table)
		n, err := sys.Getsockopt(fd, level, xtGetInfo, head)
		if err != nil {
			return nil, err
		}
		info, err := parseXTInfo(head[:n])
		if err != nil {
			return nil, err
		}
		b := make([]byte, xtListHead+int(info.size))
		copy(b[:31], table)
		binary.NativeEndian.PutUint32(b[32:], info.size)
		// EAGAIN: the table changed meanwhile.
		if n, err = sys.Getsockopt(fd, level, xtGetEntries, b); errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return parseXTables(family, table, info, b[min(xtListHead, n):n])
	}
	return nil, fmt.Errorf("table %s changed during each of %d readings", table, attempts)
}
