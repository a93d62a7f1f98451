package host

import (
	"context"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// portableSnapshot returns what Go itself reports on any system: names, addresses, MTUs and the
// number of CPUs, and what the programs of the system add. Its last warning explains that the
// missing facts were not read: a missing driver does not mean that the host has none. CPUs are
// numbered as Go counts them, since their real numbers are not known.
func portableSnapshot(ctx context.Context) *Snapshot {
	var said notes
	s := &Snapshot{OS: runtime.GOOS, Arch: runtime.GOARCH, Time: time.Now()}
	name, err := os.Hostname()
	said.add("host name", err)
	s.Name = name
	for i := range runtime.NumCPU() {
		s.CPUs = append(s.CPUs, CPU{ID: i})
	}
	interfaces, err := net.Interfaces()
	said.add("interfaces", err)
	for _, i := range interfaces {
		dev := Interface{
			Name: i.Name, Index: i.Index, MAC: i.HardwareAddr.String(), MTUBytes: i.MTU,
			Up: i.Flags&net.FlagUp != 0, Carrier: i.Flags&net.FlagRunning != 0, Virtual: i.Flags&net.FlagLoopback != 0,
		}
		addresses, err := i.Addrs()
		said.add("addresses of "+i.Name, err)
		for _, a := range addresses {
			dev.Addresses = append(dev.Addresses, a.String())
		}
		s.Interfaces = append(s.Interfaces, dev)
	}
	if boot, err := sys.BootID(); err == nil {
		s.BootID = boot
	}
	complete(ctx, s, &said)
	s.Warnings = said.sentences
	return s
}
