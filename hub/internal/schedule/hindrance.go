package schedule

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/peer/reach"
)

// tuning returns why a run must wait: a process holds the journal in one of the directories, or the
// journal has a change on trial; or "". It takes no lock: a tune that begins now must not find the
// journal locked by a reader.
func tuning(fsys durable.FS, states []string) string {
	for _, dir := range states {
		if held(filepath.Join(dir, "lock")) {
			return "a tune or another change of this host is under way"
		}
		changes, err := journal.History(fsys, dir)
		if err != nil {
			continue // no permission to read it; the lock is visible anyway
		}
		for _, c := range changes {
			if c.State == journal.Trial {
				return "a change of this host is on trial: " + c.ID
			}
		}
	}
	return ""
}

// tooBusy returns why the interface to the target carries too much for another load, or "".
func (s *Scheduler) tooBusy(ctx context.Context, p *plan) string {
	name := p.Interface
	if name == "" {
		var err error
		if name, err = interfaceTo(ctx, p.Target); err != nil {
			return "the interface to the target is unknown: " + sentence(err)
		}
	}
	rate, known := s.o.Busy(ctx, name)
	if !known {
		return "the load of " + name + " is unknown"
	}
	if rate > p.amounts.busy {
		// Without the rate, so that one event covers all runs that wait for it.
		return fmt.Sprintf("%s carries more than %v already", name, unit.BitRate(p.amounts.busy))
	}
	return ""
}

// interfaceTo returns the name of the interface of the route to a target.
func interfaceTo(ctx context.Context, target string) (string, error) {
	host, err := reach.Host(target)
	if err != nil {
		return "", err
	}
	// Connecting a UDP socket consults the routing table and sends nothing.
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(host, "9"))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return "", fmt.Errorf("find the route to %s: no address", host)
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			return "", err
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(local.IP) {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("find the route to %s: no interface has the address %s", host, local.IP)
}
