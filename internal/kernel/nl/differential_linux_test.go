package nl_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// agree compares what both sides report about one link, and returns the number of values compared.
func agree(t *testing.T, c *nl.Client, name string) (n int) {
	t.Helper()
	n, differences := differ(t, c, name)
	for _, d := range differences {
		t.Error(d)
	}
	return n
}

// differ returns the number of values compared and what differs. It compares only values that both
// sides name: either may be older than the kernel.
func differ(t *testing.T, c *nl.Client, name string) (n int, differences []string) {
	t.Helper()
	same := func(what string, ours, theirs any) {
		n++
		if a, b := fmt.Sprint(ours), fmt.Sprint(theirs); a != b {
			differences = append(differences, fmt.Sprintf("%s of %s: %s here, %s there", what, name, a, b))
		}
	}

	var links []map[string]any
	out, _ := nltest.OtherSays(t, "ip", "-j", "-d", "link", "show", "dev", name)
	if err := json.Unmarshal([]byte(out), &links); err != nil || len(links) != 1 {
		return 0, []string{fmt.Sprintf("ip link show %s: %v in %s", name, err, out)}
	}
	l, err := c.LinkByName(name)
	if err != nil {
		return 0, []string{err.Error()}
	}
	for key, v := range map[string]any{
		"ifindex": l.Index, "mtu": l.MTU, "min_mtu": l.MinMTU, "max_mtu": l.MaxMTU, "txqlen": l.TxQueueLen,
		"address": l.MAC, "qdisc": l.Qdisc,
		"num_tx_queues": l.TxQueues, "num_rx_queues": l.RxQueues, "gro_max_size": l.GROMaxBytes,
		"gso_max_size":      l.GSOMaxBytes,
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
	return n, differences
}

// This package reads the same values that ip(8) prints for a veth, for a tap, and for every link of
// this machine, which the test only reads.
func TestNetnsAgreesWithOtherTools(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		nltest.AddTap(t, "tap0")
		nltest.Must(t, c.SetMTU("v0", 8999))
		n := 0
		for _, name := range []string{"v0", "tap0", "lo"} {
			n += agree(t, c, name)
		}
		if n < 30 {
			t.Errorf("only %d values compared", n)
		}
	})
	c, err := nl.Dial()
	nltest.Must(t, err)
	defer func() { _ = c.Close() }()
	links, err := c.Links()
	nltest.Must(t, err)
	for _, l := range links {
		_, differences := differ(t, c, l.Name)
		// Other programs of this machine make links and take them away meanwhile.
		if now, err := c.LinkByName(l.Name); err != nil || now.Index != l.Index {
			continue
		}
		for _, d := range differences {
			t.Error(d)
		}
	}
}
