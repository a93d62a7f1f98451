package nl

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// otherSays runs a program of others in the namespace of the calling thread: a new process begins where the thread stands that starts it.
// ok is false when the program reports an error, as ethtool(8) does for what a driver has not.
func otherSays(t *testing.T, name string, args ...string) (out string, ok bool) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name) // not in the path of ordinary users
	}
	if err != nil {
		if strings.Contains(os.Getenv("LINERATE_REQUIRE"), "peers") {
			t.Fatalf("%s is required: %v", name, err)
		}
		t.Skipf("%s is not installed: %v", name, err)
	}
	b, err := exec.CommandContext(t.Context(), path, args...).Output()
	return string(b), err == nil
}

// agree asks both sides about one link and gives the number of values compared. Only what both have names for is compared: each may be
// older than the kernel.
func agree(t *testing.T, c *Client, name string) (n int) {
	t.Helper()
	same := func(what string, ours, theirs any) {
		t.Helper()
		n++
		if a, b := fmt.Sprint(ours), fmt.Sprint(theirs); a != b {
			t.Errorf("%s of %s: %s here, %s there", what, name, a, b)
		}
	}

	if m, err := c.Coalesce(name); err == nil {
		out, _ := otherSays(t, "ethtool", "-c", name)
		for key, value := range pairs(out) {
			// With adaptive moderation the numbers move from one moment to the next.
			if direction, _, _ := strings.Cut(key, "-"); m["adaptive-"+direction] != 0 {
				continue
			}
			// ethtool prints another word than it takes.
			if v, ok := m[strings.ReplaceAll(key, "-frame-", "-frames-")]; ok {
				same(key, v, value)
			}
		}
	}
	rx, tx, rerr := c.Rings(name)
	if out, ok := otherSays(t, "ethtool", "-g", name); ok && rerr == nil {
		most, now, _ := strings.Cut(out, "Current")
		for key, v := range map[string][2]uint32{"RX": {rx.Max, rx.Current}, "TX": {tx.Max, tx.Current}} {
			same("ring "+key, v, [2]uint32{number(pairs(most)[key]), number(pairs(now)[key])})
		}
	} else if !ok && rerr == nil {
		t.Errorf("rings of %s: %v %v here, nothing there", name, rx, tx)
	}
	ch, cerr := c.Channels(name)
	if out, ok := otherSays(t, "ethtool", "-l", name); ok && cerr == nil {
		most, now, _ := strings.Cut(out, "Current")
		for key, v := range map[string][2]uint32{
			"RX": {ch.MaxRx, ch.Rx}, "TX": {ch.MaxTx, ch.Tx}, "Other": {ch.MaxOther, ch.Other}, "Combined": {ch.MaxCombined, ch.Combined},
		} {
			same("channels "+key, v, [2]uint32{number(pairs(most)[key]), number(pairs(now)[key])})
		}
	} else if ok != (cerr == nil) {
		t.Errorf("channels of %s: %v here, %q there", name, cerr, out)
	}
	features, err := c.Features(name)
	must(t, err)
	out, _ := otherSays(t, "ethtool", "-k", name)
	for key, value := range pairs(out) {
		if f, ok := features[key]; ok {
			words := strings.Fields(value)
			same(key, []any{f.On, f.Fixed}, []any{words[0] == "on", strings.Contains(value, "[fixed]")})
		}
	}

	var links []map[string]any
	out, _ = otherSays(t, "ip", "-j", "-d", "link", "show", "dev", name)
	if err := json.Unmarshal([]byte(out), &links); err != nil || len(links) != 1 {
		t.Fatalf("ip link show %s: %v in %s", name, err, out)
	}
	l, err := c.LinkByName(name)
	must(t, err)
	for key, v := range map[string]any{
		"ifindex": l.Index, "mtu": l.MTU, "min_mtu": l.MinMTU, "max_mtu": l.MaxMTU, "txqlen": l.TxQueueLen, "address": l.MAC, "qdisc": l.Qdisc,
		"num_tx_queues": l.TxQueues, "num_rx_queues": l.RxQueues, "gro_max_size": l.GROMaxBytes, "gso_max_size": l.GSOMaxBytes,
		"gro_ipv4_max_size": l.GROIPv4MaxBytes, "gso_ipv4_max_size": l.GSOIPv4MaxBytes,
	} {
		if theirs, ok := links[0][key]; ok {
			if f, isNumber := theirs.(float64); isNumber {
				theirs = int64(f)
			}
			same(key, v, theirs)
		}
	}
	if info, ok := links[0]["linkinfo"].(map[string]any); ok && info["info_kind"] != nil {
		same("kind", l.Kind, info["info_kind"])
	}
	return n
}

// pairs reads lines of "name: value".
func pairs(text string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(value) != "" {
			out[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// number is 0 for "n/a", as ours is.
func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// What ethtool(8) and ip(8) print is what is read here: of a veth, of a tap, and of every link of this machine, which is only read.
func TestNetnsAgreesWithOtherTools(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		addTap(t, "tap0")
		must(t, c.SetCoalesce("tap0", "rx-frames", 24))
		must(t, c.SetFeature("v0", "tx-tcp-segmentation", false))
		must(t, c.SetMTU("v0", 8999))
		n := 0
		for _, name := range []string{"v0", "tap0", "lo"} {
			n += agree(t, c, name)
		}
		if n < 100 {
			t.Errorf("only %d values compared", n)
		}
	})
	c, err := Dial()
	must(t, err)
	defer func() { _ = c.Close() }()
	links, err := c.Links()
	must(t, err)
	for _, l := range links {
		agree(t, c, l.Name)
	}
}
