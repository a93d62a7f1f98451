package host_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
)

// otherSays runs another program in the network namespace of the calling thread, which a new
// process inherits.
func otherSays(name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name) // not in the path of ordinary users
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.String())
	}
	return out, nil
}

// needTools ends a test when a program that it compares with is missing.
func needTools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		testenv.Program(t, name)
	}
}

// stage makes what the tools are asked about: links of every kind that needs no hardware,
// disciplines with and without classes, routes with metrics, and packets that were sent, dropped
// and held. Lines with a question mark ask for what a small kernel may lack.
func stage() error {
	commands := `ip link set lo up
ip link add v0 type veth peer name v1
ip link add w0 type veth peer name w1
ip link add i0 type ifb
ip link add b0 type bridge
ip link set w0 master b0
? ip link add d0 type dummy
? ip link add link w1 name w1.7 type vlan id 7
? ip link add o0 type bond mode active-backup
ip link set v0 mtu 1400 txqueuelen 77 up
ip link set v1 up
ip link set w0 up
ip link set w1 address 02:00:00:00:00:77 up
ip link set i0 up
ip link set b0 up
ip addr add 192.0.2.1/24 dev v0
ip addr add 198.51.100.1/25 dev b0
ip addr add 2001:db8::1/64 dev v0 nodad
ip route add 203.0.113.0/24 via 192.0.2.9 metric 42 window 32768 mtu 1300 advmss 1200 initcwnd 20 initrwnd 30 quickack 1
ip route add 198.18.0.0/15 dev b0 src 198.51.100.1 proto static
ip route add 203.0.114.0/24 via 192.0.2.9 mtu lock 1250 rto_min 50ms features ecn
ip route add default via 192.0.2.9
ip -6 route add 2001:db8:1::/48 via 2001:db8::9 metric 7 mtu 1280
ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev v0
tc qdisc add dev v0 root handle 1: htb default 10
tc class add dev v0 parent 1: classid 1:10 htb rate 8kbit ceil 8kbit burst 3000 cburst 3000
tc qdisc add dev v0 parent 1:10 handle 10: pfifo limit 3
tc qdisc add dev v0 ingress
tc qdisc add dev w0 root handle 2: tbf rate 1mbit burst 10kb limit 30kb
? tc qdisc add dev b0 root fq_codel
? tc qdisc add dev w1 root handle 4: fq
? tc qdisc add dev i0 root handle 3: prio bands 3`
	for line := range strings.Lines(commands) {
		line, optional := strings.CutPrefix(line, "? ")
		words := strings.Fields(line)
		_, err := otherSays(words[0], words[1:]...)
		if err != nil && !(optional && strings.Contains(strings.ToLower(err.Error()), "unknown")) {
			return err
		}
	}
	// More than 8 kbit/s take and three packets hold: some are sent, some wait, some are dropped.
	from, err := net.Dial("udp4", "192.0.2.2:9")
	if err != nil {
		return err
	}
	defer from.Close()
	for range 20 {
		if _, err := from.Write(make([]byte, 1200)); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
	}
	return nil
}

// TestNetnsAgreesWithTools: what tc(8), ip(8) and sysctl(8) print of a namespace is what the
// snapshot says of it, for every field that both have.
func TestNetnsAgreesWithTools(t *testing.T) {
	needTools(t, "tc", "ip", "sysctl")
	inNamespace(t, unix.CLONE_FS|unix.CLONE_NEWNS, func() error {
		if err := errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("sysfs", "/sys", "sysfs", unix.MS_RDONLY, "")); err != nil {
			return fmt.Errorf("a sysfs of the namespace: %w", err)
		}
		// Link-local addresses would come by themselves, and with them packets.
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/addr_gen_mode", []byte("1"), 0o644); err != nil {
			return err
		}
		if err := stage(); err != nil {
			return err
		}
		// The shaper sends on while we look, and the bridge now and then. A snapshot between two
		// equal answers of the tools is of the same moment.
		for range 50 {
			qdiscs, err := otherSays("tc", "-j", "-s", "qdisc", "show")
			links, err2 := ipLinks()
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			s, err := host.Root{}.Snapshot(t.Context())
			if err != nil {
				return err
			}
			qdiscsAfter, err := otherSays("tc", "-j", "-s", "qdisc", "show")
			linksAfter, err2 := ipLinks()
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			if !bytes.Equal(qdiscs, qdiscsAfter) || !reflect.DeepEqual(links, linksAfter) {
				continue
			}
			c := comparison{t: t}
			c.links(links, s)
			err = errors.Join(c.qdiscs(qdiscs, s), c.routes(s), c.settings(s))
			if c.compared < 300 {
				t.Errorf("only %d values compared", c.compared)
			}
			return err
		}
		return errors.New("the counters never stood still")
	})
}

// comparison counts what was held against each other, so that a test that compares nothing fails.
type comparison struct {
	t        *testing.T
	compared int
}

func (c *comparison) same(what string, ours, theirs any) {
	c.compared++
	if a, b := fmt.Sprint(ours), fmt.Sprint(theirs); a != b {
		c.t.Errorf("%s: %s here, %s there", what, a, b)
	}
}

// qdiscs compares every discipline that tc lists, and that there are no others.
func (c *comparison) qdiscs(out []byte, s *host.Snapshot) error {
	var theirs []struct {
		Kind, Dev, Handle, Parent                                          string
		Root                                                               bool
		Bytes, Packets, Drops, Overlimits, Requeues, Backlog, Qlen, Refcnt uint64
		Options                                                            map[string]any
	}
	if err := json.Unmarshal(out, &theirs); err != nil {
		return fmt.Errorf("tc: %w in %s", err, out)
	}
	c.same("disciplines", len(s.Qdiscs), len(theirs))
	sent, dropped := uint64(0), uint64(0)
	for _, q := range theirs {
		parent, handle := q.Parent, q.Handle
		if q.Root {
			parent = "root"
		}
		if handle == "0:" {
			handle = "" // the kernel's own, without a number
		}
		i := slices.IndexFunc(s.Qdiscs, func(o host.Qdisc) bool {
			return o.Interface == q.Dev && o.Kind == q.Kind && o.Handle == handle &&
				(o.Parent == parent || q.Kind == "ingress")
		})
		if i < 0 {
			c.t.Errorf("%s %s %s at %s of %s is not known here: %+v", q.Kind, handle, q.Parent, parent, q.Dev, s.Qdiscs)
			continue
		}
		ours := s.Qdiscs[i]
		what := q.Kind + " of " + q.Dev
		c.same("bytes of "+what, ours.Bytes, q.Bytes)
		c.same("packets of "+what, ours.Packets, q.Packets)
		c.same("drops of "+what, ours.Drops, q.Drops)
		c.same("overlimits of "+what, ours.Overlimits, q.Overlimits)
		c.same("requeues of "+what, ours.Requeues, q.Requeues)
		c.same("backlog of "+what, ours.BacklogBytes, q.Backlog)
		c.same("queue of "+what, ours.BacklogPackets, q.Qlen)
		for name, value := range ours.Parameters {
			// tc rounds times in its text and leaves out what is not set: sizes are what both write
			// alike.
			if theirs, ok := q.Options[name].(float64); ok &&
				(name == "limit" || name == "flows" || name == "quantum") {
				c.same(name+" of "+what, value, int64(theirs))
			}
		}
		if q.Kind == "pfifo" && ours.Parameters["limit"] != "3" {
			c.t.Errorf("pfifo of %s: %v", q.Dev, ours.Parameters)
		}
		sent, dropped = sent+q.Packets, dropped+q.Drops
	}
	if sent == 0 || dropped == 0 {
		c.t.Errorf("%d packets sent, %d dropped: zeros prove nothing", sent, dropped)
	}
	return nil
}

// ipLink is what ip(8) prints of an interface, as far as it is compared. Bridges have timers
// beside, which never stand still.
type ipLink struct {
	Name   string   `json:"ifname"`
	Index  int      `json:"ifindex"`
	MTU    int      `json:"mtu"`
	Queue  int      `json:"txqlen"`
	Qdisc  string   `json:"qdisc"`
	MAC    string   `json:"address"`
	Master string   `json:"master"`
	Link   string   `json:"link"`
	Flags  []string `json:"flags"`
	Info   struct {
		Kind string `json:"info_kind"`
		Data struct {
			ID       int    `json:"id"`
			Protocol string `json:"protocol"`
		} `json:"info_data"`
	} `json:"linkinfo"`
	Addresses []struct {
		Local  string `json:"local"`
		Length int    `json:"prefixlen"`
	} `json:"addr_info"`
	Counters map[string]map[string]uint64 `json:"stats64"`
}

// ipLinks asks ip(8) for all interfaces.
func ipLinks() (links []ipLink, err error) {
	out, err := otherSays("ip", "-j", "-d", "-s", "addr", "show")
	if err == nil {
		err = json.Unmarshal(out, &links)
	}
	return links, err
}

// links compares interfaces and their addresses.
func (c *comparison) links(theirs []ipLink, s *host.Snapshot) {
	c.same("interfaces", len(s.Interfaces), len(theirs))
	for _, l := range theirs {
		dev, _ := s.Interface(l.Name)
		for what, pair := range map[string][2]any{
			"index": {dev.Index, l.Index}, "mtu": {dev.MTUBytes, l.MTU}, "queue length": {dev.TxQueueLen, l.Queue},
			"qdisc": {dev.Qdisc, l.Qdisc}, "mac": {dev.MAC, l.MAC},
			"up":      {dev.Up, slices.Contains(l.Flags, "UP")},
			"carrier": {dev.Carrier, slices.Contains(l.Flags, "LOWER_UP")},
			"vlan":    {dev.VLANID, l.Info.Data.ID}, "vlan protocol": {dev.VLANProtocol, l.Info.Data.Protocol},
		} {
			c.same(what+" of "+l.Name, pair[0], pair[1])
		}
		if l.Info.Kind != "" {
			c.same("kind of "+l.Name, dev.Kind, l.Info.Kind)
		}
		if l.Master != "" {
			c.same("what is above "+l.Name, slices.Contains(dev.Above, l.Master), true)
		}
		if l.Info.Kind == "vlan" {
			c.same("what is below "+l.Name, dev.Below, []string{l.Link})
		}
		if l.Info.Kind == "veth" {
			c.same("other end of "+l.Name, dev.Peer, l.Link)
		}
		var addresses []string
		for _, a := range l.Addresses {
			addresses = append(addresses, fmt.Sprintf("%s/%d", a.Local, a.Length))
		}
		slices.Sort(addresses)
		ours := slices.Clone(dev.Addresses)
		slices.Sort(ours)
		c.same("addresses of "+l.Name, ours, addresses)
		for direction, prefix := range map[string]string{"rx": "rx_", "tx": "tx_"} {
			for _, name := range []string{"bytes", "packets", "errors", "dropped"} {
				if n, ok := l.Counters[direction][name]; ok {
					c.same(prefix+name+" of "+l.Name, dev.Counters[prefix+name], n)
				}
			}
		}
	}
}

// routes compares the main table of both families.
func (c *comparison) routes(s *host.Snapshot) error {
	n := 0
	for _, family := range []string{"-4", "-6"} {
		out, err := otherSays("ip", family, "-j", "-d", "route", "show", "table", "main")
		if err != nil {
			return err
		}
		var theirs []struct {
			Type, Dst, Gateway, Dev, Prefsrc, Protocol string
			Metric                                     int
			Metrics                                    []map[string]any
		}
		if err := json.Unmarshal(out, &theirs); err != nil {
			return fmt.Errorf("ip route: %w in %s", err, out)
		}
		for _, r := range theirs {
			if r.Type != "" && r.Type != "unicast" {
				continue
			}
			n++
			to := r.Dst
			if to == "default" && family == "-6" {
				to = "::/0"
			}
			i := slices.IndexFunc(s.Routes, func(o host.Route) bool {
				return (o.Destination == to || strings.TrimSuffix(o.Destination, "/128") == to ||
					strings.TrimSuffix(o.Destination, "/32") == to) && o.Interface == r.Dev && o.Gateway == r.Gateway
			})
			if i < 0 {
				c.t.Errorf("route to %s over %s is not known here: %+v", to, r.Dev, s.Routes)
				continue
			}
			ours := s.Routes[i]
			metrics := make(map[string]any)
			for _, m := range r.Metrics {
				for name, value := range m {
					metrics[name] = value
				}
			}
			number := func(name string) int {
				f, _ := metrics[name].(float64) // JSON's only number; absent is 0, as ours is.
				return int(f)
			}
			_, ecn := metrics["ecn"]
			for what, pair := range map[string][2]any{
				"ecn": {ours.ECN, ecn}, "metric": {ours.Priority, r.Metric}, "source": {ours.Source, r.Prefsrc},
				"protocol": {ours.Protocol, r.Protocol}, "window": {ours.WindowBytes, number("window")},
				"mtu": {ours.MTUBytes, number("mtu")}, "advmss": {ours.AdvMSSBytes, number("advmss")},
				"initcwnd": {ours.InitCwnd, number("initcwnd")},
				"rto_min":  {ours.RTOMinSec * 1e3, number("rto_min")}, "initrwnd": {ours.InitRwnd, number("initrwnd")},
				"quickack": {ours.Quickack, number("quickack") != 0},
			} {
				c.same(what+" of the route to "+to, pair[0], pair[1])
			}
		}
	}
	c.same("routes", len(s.Routes), n)
	return nil
}

// settings asks sysctl(8) for every setting that was read.
func (c *comparison) settings(s *host.Snapshot) error {
	var names []string
	for _, set := range s.Settings {
		names = append(names, strings.TrimPrefix(set.Knob, "sysctl:"))
	}
	out, err := otherSays("sysctl", names...)
	if err != nil {
		return err
	}
	said := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(line, "=")
		said[strings.TrimSpace(name)] = strings.Join(strings.Fields(value), " ")
	}
	for _, set := range s.Settings {
		name := strings.TrimPrefix(set.Knob, "sysctl:")
		theirs, ok := said[name]
		if !ok {
			c.t.Errorf("sysctl says nothing of %s", name)
		}
		c.same(name, set.Value, theirs)
	}
	return nil
}
