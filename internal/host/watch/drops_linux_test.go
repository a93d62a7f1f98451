package watch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// TestDroppedOnce: a datagram that a queueing discipline refuses is counted by the discipline, by
// IP and by UDP, and is reported once.
func TestDroppedOnce(t *testing.T) {
	const sent = 200
	var s *Span
	inNetNS(t, func() error {
		c, err := nl.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		// A link behind a bucket that lets a few packets through at once and then next to none.
		err = errors.Join(c.AddVeth("near0", "far0", -1), c.SetUp("far0"), c.SetUp("near0"),
			c.AddAddress("near0", "192.0.2.1/24"),
			c.ReplaceTBF("near0", nl.TBF{RateBitsPerSecond: 8000, BurstBytes: 5000, LimitBytes: 10_000}))
		if err != nil {
			return err
		}
		// A broadcast needs no answer of a neighbour.
		u, err := net.Dial("udp4", "192.0.2.255:9")
		if err != nil {
			return err
		}
		defer u.Close()
		w, err := Begin(host.Root{}, Options{Sockets: -1})
		if err != nil {
			return err
		}
		for range sent {
			// The kernel reports this loss to a socket only if it requests that
			// (IP_RECVERR).
			if _, err := u.Write(make([]byte, 1000)); err != nil {
				return err
			}
		}
		s, err = w.End()
		return err
	})
	v := s.Counters.Values
	lost := v["qdisc.near0.drops"]
	if lost == 0 || v["Ip.OutDiscards"] != lost || v["Udp.SndbufErrors"] != lost {
		t.Errorf("of %d the discipline dropped %d, IP discarded %d, UDP missed %d: this kernel counts in another way",
			sent, lost, v["Ip.OutDiscards"], v["Udp.SndbufErrors"])
	}
	for _, d := range s.Drops {
		// Neighbours, softnet and the like are of the whole machine, where others are at work.
		if d.Stage == drops.IP || d.Stage == drops.Socket || d.Stage == drops.Qdisc &&
			(d.Place != "qdisc.near0.drops" || d.Total != lost) {
			t.Errorf("reported as well: %+v", d)
		}
	}
}

// ordinaryMark in the environment makes TestOrdinaryUserChild do its work.
const ordinaryMark = "LINERATE_TEST_ORDINARY"

// TestOrdinaryUser: an ordinary user gets sockets, interrupts and counters.
func TestOrdinaryUser(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestOrdinaryUserChild$", "-test.v")
	cmd.Env = append(os.Environ(), ordinaryMark+"=yes")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "seen by user") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestOrdinaryUserChild is the process that TestOrdinaryUser starts; run directly it tests nothing.
func TestOrdinaryUserChild(t *testing.T) {
	if os.Getenv(ordinaryMark) == "" {
		return
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			t.Fatalf("become an ordinary user: %v", err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := Host(t.Context(), host.Root{}, Options{Duration: time.Millisecond, Sockets: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if s.Sockets == nil {
		t.Fatalf("no sockets: %q", s.Warnings)
	}
	for _, listener := range s.Sockets.Listeners {
		if listener.Local.String() == l.Addr().String() && listener.Limit > 0 {
			fmt.Printf("seen by user %d\n", os.Geteuid())
			return
		}
	}
	t.Errorf("%v is not among %+v", l.Addr(), s.Sockets.Listeners)
}
