package equal

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Kernel loads both rulesets of nftables or iptables into network namespaces of their own, forwards
// the same packets through both and compares all counters that both have, and how many packets were
// forwarded. Packets enter at their In, of which there are at most 255, and leave at the Out of the
// first one; only those of IPv4 are sent. It needs root, the programs nft and ip, and those of the
// rules.
func Kernel(ctx context.Context, before, after *ruleset.Ruleset, packets []ruleset.Packet,
	repeat int) (KernelResult, error) {
	var out KernelResult
	sets, err := read.SavedSets(ctx, before.Tables...)
	if err != nil {
		return out, fmt.Errorf("compare rules in the kernel: %w", err)
	}
	var got [2]map[*ruleset.Counter]uint64
	var passed [2]uint64
	for side, r := range []*ruleset.Ruleset{before, after} {
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // the thread and its namespace end with this function
			got[side], passed[side], err = inKernel(ctx, r, sets, packets, repeat)
		}()
		<-done
		if err != nil {
			return out, fmt.Errorf("compare rules in the kernel: %w", err)
		}
	}
	for _, p := range packets {
		if p.Source.Is4() {
			out.Packets += repeat
		}
	}
	for c := range Counters(before) {
		a, okA := got[0][c]
		b, okB := got[1][c]
		switch {
		case !okA:
			continue // the kernel does not report it
		case !okB:
			out.Different = "the kernel lacks the counter of " + describe(before, c)
		case a != b:
			out.Different = fmt.Sprintf("counter of %s: %d packets before, %d after", describe(before, c), a, b)
		}
		if out.Counters++; a != c.Packets {
			out.Moved++
		}
	}
	if passed[0] != passed[1] {
		out.Different = fmt.Sprintf("%d packets forwarded before, %d after", passed[0], passed[1])
	}
	return out, nil
}

// witness counts what arrives, and what the rules let pass.
const witness = `table inet linerate_witness {
	counter arrived { packets 0 bytes 0 }
	counter passed { packets 0 bytes 0 }
	chain early { type filter hook prerouting priority -450; iifname != "%[1]s" counter name "arrived"; }
	chain late { type filter hook forward priority 2147483647; counter name "passed"; }
}
`

func inKernel(ctx context.Context, r *ruleset.Ruleset, sets []byte, packets []ruleset.Packet,
	repeat int) (map[*ruleset.Counter]uint64, uint64, error) {
	if len(packets) == 0 {
		return nil, 0, fmt.Errorf("no packet to send")
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, 0, fmt.Errorf("unshare: %w", err)
	}
	to := packets[0].Out
	peers := map[string]string{to: "lrpeer"}
	links := "link set lo up\n" + veth(to, peers[to], 0)
	for _, p := range packets {
		if peers[p.In] == "" {
			peers[p.In] = fmt.Sprintf("lrpeer%d", len(peers))
			links += veth(p.In, peers[p.In], len(peers)-1)
		}
	}
	if len(peers) > 256 {
		return nil, 0, fmt.Errorf("%d interfaces", len(peers))
	}
	links += "route add default dev " + to + "\n"
	settings := map[string]string{"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/rp_filter": "0",
		"net/ipv4/conf/default/rp_filter": "0", "net/ipv6/conf/all/disable_ipv6": "1",
		"net/ipv6/conf/default/disable_ipv6": "1"}
	for name, value := range settings {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644); err != nil && !os.IsNotExist(err) {
			return nil, 0, fmt.Errorf("set %s: %w", name, err)
		}
	}
	furnish := exec.CommandContext(ctx, "ip", "-batch", "-")
	furnish.Stdin = strings.NewReader(links)
	if out, err := furnish.CombinedOutput(); err != nil {
		return nil, 0, fmt.Errorf("ip: %w: %.500s", err, out)
	}
	if err := load(ctx, r, sets, peers[to]); err != nil {
		return nil, 0, err
	}
	sent, err := inject(packets, peers, repeat)
	if err != nil {
		return nil, 0, err
	}
	passed, err := counted(ctx, uint64(sent))
	if err != nil {
		return nil, 0, err
	}
	now, err := loaded(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	values := make(map[string]uint64)
	places(now, func(place string, c *ruleset.Counter) { values[place] = c.Packets })
	got := make(map[*ruleset.Counter]uint64)
	places(r, func(place string, c *ruleset.Counter) {
		if v, ok := values[place]; ok {
			got[c] = v
		}
	})
	return got, passed, nil
}

// longestArrival bounds the wait for the last packet. It decides nothing unless packets are lost.
const longestArrival = time.Minute

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

// counted waits until all packets have arrived and are counted everywhere, and returns how many the
// rules let pass. The kernel forwards a packet in the softirq of its sender, but later where the
// softirqs of a busy host are late.
func counted(ctx context.Context, sent uint64) (passed uint64, err error) {
	for end := time.Now().Add(longestArrival); ; time.Sleep(time.Millisecond) {
		arrived, _, err := witnessed(ctx)
		switch {
		case err != nil:
			return 0, err
		case arrived == sent:
			// The last packet may be at work in a rule still. Packets hold rcu, and membarrier(2) waits
			// for all that do. A kernel without it leaves the time that nft takes to start.
			_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
			_, passed, err = witnessed(ctx)
			return passed, err
		case time.Now().After(end):
			return 0, fmt.Errorf("%d packets sent, %d arrived", sent, arrived)
		}
	}
}

// witnessed reads the witness.
func witnessed(ctx context.Context) (arrived, passed uint64, err error) {
	list, err := exec.CommandContext(ctx, "nft", "-j", "list", "table", "inet", "linerate_witness").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("nft: %w", err)
	}
	seen, err := read.NFT(bytes.NewReader(list))
	if err != nil {
		return 0, 0, err
	}
	for _, o := range seen.Table("inet", "linerate_witness").Objects {
		switch o.Name {
		case "arrived":
			arrived = o.Counter.Packets
		case "passed":
			passed = o.Counter.Packets
		}
	}
	return arrived, passed, nil
}

// load gives the rules, and the witness, to the kernel of the namespace. Packets leave by the peer
// out.
func load(ctx context.Context, r *ruleset.Ruleset, sets []byte, out string) error {
	var text bytes.Buffer
	feed := func(name string, args ...string) error {
		c := exec.CommandContext(ctx, name, args...)
		c.Stdin = &text
		// The namespace has no other user, and the lock of all namespaces may be held for long.
		c.Env = append(os.Environ(), "XTABLES_LOCKFILE=/proc/self/status")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %.2000s", name, err, out)
		}
		return nil
	}
	if r.Program != ruleset.NFT {
		if text.Write(sets); len(sets) > 0 {
			if err := feed("ipset", "restore"); err != nil {
				return err
			}
		}
		for _, family := range families(r) {
			if err := ruleset.WriteXtables(&text, ofFamily(r, family)); err != nil {
				return err
			}
			if err := feed(read.XTables(r.Program, family, "restore"), "-c"); err != nil {
				return err
			}
			text.Reset()
		}
	} else if err := ruleset.WriteNFT(&text, r); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n"+witness, out)
	return feed("nft", "-f", "-")
}

// families returns those of a ruleset of iptables, which has a program for each.
func families(r *ruleset.Ruleset) (all []string) {
	for _, t := range r.Tables {
		if !slices.Contains(all, t.Family) {
			all = append(all, t.Family)
		}
	}
	return all
}

func ofFamily(r *ruleset.Ruleset, family string) *ruleset.Ruleset {
	part := *r
	part.Tables = slices.DeleteFunc(slices.Clone(r.Tables), func(t *ruleset.Table) bool { return t.Family != family })
	return &part
}

// loaded reads the rules of the namespace with the program that loaded them.
func loaded(ctx context.Context, r *ruleset.Ruleset) (*ruleset.Ruleset, error) {
	if r.Program == ruleset.NFT {
		list, err := exec.CommandContext(ctx, "nft", "-j", "list", "ruleset").Output()
		if err != nil {
			return nil, fmt.Errorf("nft: %w", err)
		}
		return read.NFT(bytes.NewReader(list))
	}
	all := &ruleset.Ruleset{Program: r.Program}
	for _, family := range families(r) {
		name := read.XTables(r.Program, family, "save")
		list, err := exec.CommandContext(ctx, name, "-c").Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		one, err := read.IPTables(bytes.NewReader(list), nil)
		if err != nil {
			return nil, err
		}
		all.Tables = append(all.Tables, one.Tables...)
	}
	return all, nil
}

// places calls f for every counter of a ruleset with the place where it stands, which survives nft.
func places(r *ruleset.Ruleset, f func(string, *ruleset.Counter)) {
	set := func(place string, types []ruleset.Field, s *ruleset.Set) {
		for _, e := range s.Elements {
			if e.Counter == nil {
				continue
			}
			key := place
			for i, k := range e.Key {
				key += " " + types[min(i, len(types)-1)].FormatRange(k)
			}
			f(key, e.Counter)
		}
	}
	for _, t := range r.Tables {
		at := t.Family + " " + t.Name
		for _, o := range t.Objects {
			if o.Counter != nil {
				f(at+" object "+o.Name, o.Counter)
			}
		}
		for _, s := range t.Sets {
			if len(s.Types) > 0 {
				set(at+" set "+s.Name, s.Fields(), s)
			}
		}
		for _, c := range t.Chains {
			if c.Counter != nil {
				f(at+" policy of chain "+c.Name, c.Counter)
			}
			for i, rule := range c.Rules {
				for k, n := range rule.Counters() {
					if n.Name == "" {
						f(fmt.Sprintf("%s chain %s rule %d counter %d", at, c.Name, i, k), n)
					}
				}
			}
		}
	}
}

// veth returns the commands that make a pair of interfaces. The first one has the address of its
// number.
func veth(name, peer string, number int) string {
	return fmt.Sprintf("link add %[1]s address 02:00:00:00:00:%02[3]x type veth peer name %[2]s\n"+
		"link set %[1]s arp off up\nlink set %[2]s arp off up\n", name, peer, number)
}

// inject sends packets to the interfaces where they enter, through their peers.
func inject(packets []ruleset.Packet, peers map[string]string, repeat int) (sent int, err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	type enter struct {
		frame []byte
		to    *unix.SockaddrLinklayer
	}
	links := make(map[string]*unix.SockaddrLinklayer)
	var frames []enter
	for _, p := range packets {
		if !p.Source.Is4() || !p.Destination.Is4() {
			continue
		}
		if links[p.In] == nil {
			peer, err := net.InterfaceByName(peers[p.In])
			if err != nil {
				return 0, fmt.Errorf("index of the interface: %w", err)
			}
			link, err := net.InterfaceByName(p.In)
			if err != nil {
				return 0, fmt.Errorf("address of the interface: %w", err)
			}
			links[p.In] = &unix.SockaddrLinklayer{Protocol: 0x0008, Ifindex: peer.Index, Halen: 6}
			copy(links[p.In].Addr[:], link.HardwareAddr)
		}
		f := frame4(p)
		copy(f, links[p.In].Addr[:6])
		frames = append(frames, enter{f, links[p.In]})
	}
	for range repeat {
		for _, f := range frames {
			if err := unix.Sendto(fd, f.frame, 0, f.to); err != nil {
				return sent, fmt.Errorf("send: %w", err)
			}
			sent++
		}
	}
	return sent, nil
}

// frame4 returns an Ethernet frame with a packet of IPv4: its addresses, its protocol and its
// ports.
func frame4(p ruleset.Packet) []byte {
	payload := make([]byte, 20)
	binary.BigEndian.PutUint16(payload, p.SourcePort)
	binary.BigEndian.PutUint16(payload[2:], p.DestinationPort)
	from, to := p.Source.As4(), p.Destination.As4()
	switch p.Protocol {
	case 6:
		payload[12], payload[13] = 0x50, 0x10 // five words, ACK
		if p.State == ruleset.StateNew {
			payload[13] = 0x02
		}
		pseudo := slices.Concat(from[:], to[:], []byte{0, 6, 0, 20}, payload)
		binary.BigEndian.PutUint16(payload[16:], checksum(pseudo))
	case 17:
		payload[5] = 20 // length; no checksum
	}
	h := make([]byte, 20)
	h[0], h[3], h[8], h[9] = 0x45, 40, 64, p.Protocol
	copy(h[12:], from[:])
	copy(h[16:], to[:])
	binary.BigEndian.PutUint16(h[10:], checksum(h))
	return slices.Concat([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0}, h, payload)
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
