//go:build soak

package rewrite_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// TestMain gives the package a guest whose clock counts instructions, with two wired cards.
func TestMain(m *testing.M) {
	guesttest.MainIn(m, guest.Options{Counted: true, MemoryBytes: 512 << 20,
		Cards:    []guest.Card{{Model: "e1000", Wire: 1}, {Model: "e1000", Wire: 1}},
		Modules:  []string{"crc32c_generic", "af_packet", "e1000", "8021q", "veth", "nf_tables"},
		Programs: []string{"ip", "nft"}})
}

// vlanRules are those of a router that knows forty houses by their VLANs: from each and to it, all
// packets and TCP.
func vlanRules(rules bool) string {
	text := "flush ruleset\n"
	if !rules {
		return text
	}
	text += "table ip filter {\n chain forward {\n  type filter hook forward priority filter; policy accept;\n"
	for i := range 40 {
		for _, body := range []string{`iifname "trunk.%d"`, `oifname "trunk.%d"`, `iifname "trunk.%d" meta l4proto tcp`,
			`oifname "trunk.%d" meta l4proto tcp`} {
			text += fmt.Sprintf("  "+body+" counter comment \"house %d\"\n", 101+i, i)
		}
	}
	return text + " }\n}\n"
}

// vlanFrame is a frame from a house, tagged with its VLAN, or to it.
func vlanFrame(i int, up bool, to [6]byte) []byte {
	b := houseFrame(0)
	copy(b, to[:])
	b[14+9] = []byte{6, 17}[i/40%2]
	house, world := []byte{10, 9, byte(i % 40), 7}, []byte{198, 51, 100, 7}
	if !up {
		house, world = world, house
	}
	copy(b[14+12:], house)
	copy(b[14+16:], world)
	b[14+10], b[14+11] = 0, 0
	var sum uint32
	for k := 14; k < 34; k += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[k:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[14+10:], ^uint16(sum))
	if !up {
		return b
	}
	tagged := append([]byte{}, b[:12]...)
	tagged = append(tagged, 0x81, 0, 0, byte(101+i%40))
	return append(tagged, b[12:]...)
}

// TestVLANs: forty real VLANs on a card with a driver of its own. Old and new rules count the same
// packets alike, each of 160 counters, and the new ones take fewer instructions.
func TestVLANs(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	run := func(line string) {
		t.Helper()
		args := strings.Fields(line)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	run("ip link set eth0 name trunk")
	run("ip link add up0 type veth peer name up1")
	for _, name := range []string{"trunk", "eth1", "up0", "up1"} {
		run("ip link set " + name + " arp off up")
	}
	for i := range 40 {
		run(fmt.Sprintf("ip link add link trunk name trunk.%d type vlan id %d", 101+i, 101+i))
		run(fmt.Sprintf("ip link set trunk.%d arp off up", 101+i))
		run(fmt.Sprintf("ip route add 10.9.%d.0/24 dev trunk.%d", i, 101+i))
	}
	run("ip route add default dev up0")
	for _, name := range []string{"ip_forward", "conf/all/forwarding"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte("1"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	up, down := vlanOutbox(t, "eth1", "trunk", true), vlanOutbox(t, "up1", "up0", false)
	load := func(text string) {
		c := exec.Command("nft", "-f", "-")
		c.Stdin = strings.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("nft: %v: %s", err, out)
		}
	}
	counters := func() map[string][]uint64 { // of each house
		out, err := exec.Command("nft", "-j", "list", "ruleset").Output()
		if err != nil {
			t.Fatal(err)
		}
		r, err := read.Any(out)
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string][]uint64)
		if len(r.Tables) == 0 {
			return all
		}
		for _, c := range r.Tables[0].Chains {
			for _, rule := range c.Rules {
				for _, n := range rule.Counters() {
					all[rule.Comment] = append(all[rule.Comment], n.Packets)
				}
			}
		}
		for _, house := range all {
			slices.Sort(house)
		}
		return all
	}
	const cycles = 24 // of 320 frames on average
	send := func() time.Duration {
		began := time.Now()
		for c := range cycles {
			up.send(t, (c+1)%3+1)
			down.send(t, c%3+1)
		}
		return time.Since(began)
	}
	text := vlanRules(true)
	before, err := read.Any([]byte(strings.TrimPrefix(text, "flush ruleset\n")))
	if err != nil {
		t.Fatal(err)
	}
	got := rewrite.Optimise(before, equal.Usual())
	if got.Proof.Answer != equal.Equal || len(got.Changed) != 1 {
		t.Fatalf("%s %s", got.Proof.Answer, got.Proof.What)
	}
	var shorter strings.Builder
	if err := rewrite.Write(&shorter, got.Rules); err != nil {
		t.Fatal(err)
	}
	times := make(map[string]time.Duration)
	seen := make(map[string]map[string][]uint64)
	for _, way := range []struct{ name, text string }{{"none", vlanRules(false)}, {"linear", text},
		{"optimised", "flush ruleset\n" + shorter.String()}} {
		load(way.text)
		send() // warms the caches
		load(way.text)
		times[way.name] = send()
		seen[way.name] = counters()
	}
	if a, b := fmt.Sprint(seen["linear"]), fmt.Sprint(seen["optimised"]); a != b || len(seen["linear"]) != 40 {
		t.Errorf("counters differ:\n%s\n%s", a, b)
	}
	if times["linear"] < times["optimised"] {
		t.Errorf("%v with the rules as written, %v with the new ones", times["linear"], times["optimised"])
	}
	per := func(name string) float64 { return float64(times[name].Nanoseconds()) / float64(cycles*2*160) }
	sum := 0
	for _, house := range seen["optimised"] {
		sum += len(house)
	}
	t.Logf("note: rules per packet %.1f before, %.1f after; %d counters alike after %d packets; "+
		"instructions for each packet: %.0f without rules, %.0f as written, %.0f optimised",
		got.Before, got.After, sum, cycles*2*160, per("none"), per("linear"), per("optimised"))
}

// vlanSender sends frames at one interface to another, and waits until the router has forwarded
// them.
type vlanSender struct {
	socket int
	out    *sys.Outbox
	count  int
	up     bool
}

func vlanOutbox(t *testing.T, at, to string, up bool) *vlanSender {
	t.Helper()
	text, err := os.ReadFile("/sys/class/net/" + to + "/address")
	if err != nil {
		t.Fatal(err)
	}
	var address [6]byte
	for i, part := range strings.Split(strings.TrimSpace(string(text)), ":") {
		n, err := strconv.ParseUint(part, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		address[i] = byte(n)
	}
	text, err = os.ReadFile("/sys/class/net/" + at + "/ifindex")
	if err != nil {
		t.Fatal(err)
	}
	index, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	s := &vlanSender{up: up, count: 80, out: sys.NewOutbox(80)}
	if s.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s.socket) })
	if err := unix.Bind(s.socket, &unix.SockaddrLinklayer{Protocol: 0x0008, Ifindex: index}); err != nil {
		t.Fatal(err)
	}
	for i := range s.count {
		s.out.Set(i, vlanFrame(i, up, address), 0)
	}
	return s
}

// forwarded is how many packets the router has sent on.
func (s *vlanSender) forwarded(t *testing.T) uint64 {
	t.Helper()
	name := "trunk"
	if s.up {
		name = "up0"
	}
	text, err := os.ReadFile("/sys/class/net/" + name + "/statistics/tx_packets")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// send sends all frames some times.
func (s *vlanSender) send(t *testing.T, times int) {
	t.Helper()
	for range times {
		before := s.forwarded(t)
		for left := s.count; left > 0; {
			n, err := s.out.Send(s.socket, left)
			if err != nil {
				t.Fatal(err)
			}
			left -= n
		}
		for deadline := time.Now().Add(time.Minute); s.forwarded(t) < before+uint64(s.count); {
			if time.Now().After(deadline) {
				t.Fatalf("only %d of %d frames came through", s.forwarded(t)-before, s.count)
			}
			time.Sleep(50 * time.Microsecond)
		}
	}
}
