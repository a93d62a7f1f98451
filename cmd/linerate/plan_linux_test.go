package main_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"
)

// network is every setting of the network, and what both cards have.
const network = `sysctl -a 2>/dev/null | grep '^net\.' | grep -v 'dst_cache\|tcp_fastopen_key\|_metrics'
	for i in enp0s2 enp0s3; do
		until [ "$(cat /sys/class/net/$i/carrier)" = 1 ]; do sleep 0.5; done
		ip link show $i | sed 's/^[0-9]*: //'; ethtool -g $i; ethtool -k $i; tc qdisc show dev $i
	done
	ip route`

// plan reads the host and runs the script of its plan, as an administrator would, and then the
// script that undoes it: every setting of the network, and every byte below /etc, is as it was.
func (h *host) plan() {
	h.t.Helper()
	h.sh(`for i in enp0s2 enp0s3; do until ip -4 addr show $i | grep -q inet; do sleep 0.5; done; done
		sysctl -qw net.ipv4.tcp_notsent_lowat=65536 # no default: undo has to return to it
		plan='linerate plan --role bulk --rtt 200ms --memory 64GiB --connections 2 --mtu 4000 --interface enp0s2'
		$plan >/run/plan; $plan --undo >/run/plan-undo`)
	before, files := h.sh(network), h.tree()
	h.sh("sh /run/plan")
	if diff := different(before, h.sh(network)); len(diff) < 6 { // each setting is two lines
		h.t.Errorf("the plan changes only %q", diff)
	}
	// One script for all settings: each start of a shell costs an emulated processor a tenth of a
	// second.
	h.says(`sed -n "s/^sysctl -w \([a-z0-9_.]*\)='*\([^']*\)'*/\1 \2/p" /run/plan >/run/plan-set
		[ -s /run/plan-set ]
		while read -r name want; do
			[ "$(sysctl -n $name | tr '\t' ' ')" = "$want" ] || echo "$name is not $want"
		done </run/plan-set`)
	h.says("cat /sys/class/net/enp0s2/mtu; systemd-analyze cat-config sysctl.d | grep -c '^net.ipv4.tcp_[rw]mem'",
		"4000", "2")
	h.sh("sh /run/plan-undo")
	if diff := cmp.Diff(before, h.sh(network)); diff != "" {
		h.t.Errorf("the network after a plan and its undo (-before +after):\n%s", diff)
	}
	h.same(files, "after a plan and its undo")
	h.sh("sysctl -qw net.ipv4.tcp_notsent_lowat=4294967295")
	h.passed("a plan, applied and undone")
}

// different returns the lines that one of two texts has and the other has not.
func different(a, b string) (lines []string) {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		for line := range strings.Lines(pair[0]) {
			if !strings.Contains(pair[1], line) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}
