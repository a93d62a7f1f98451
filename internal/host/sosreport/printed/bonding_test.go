package printed

import "testing"

// TestParseBond has bonds of RHEL 5 and 7 in the tests of insights-core, and of Debian 11.
func TestParseBond(t *testing.T) {
	for _, c := range []struct {
		text, mode string
		members    []string
	}{
		{"Ethernet Channel Bonding Driver: v3.2.4 (January 28, 2008)\n\n" +
			"Bonding Mode: IEEE 802.3ad Dynamic link aggregation\nTransmit Hash Policy: layer2 (0)\n" +
			"MII Status: up\n\n802.3ad info\nLACP rate: slow\nActive Aggregator Info:\n" +
			"\tAggregator ID: 3\n\nSlave Interface: eth1\nMII Status: up\nLink Failure Count: 0\n\n" +
			"Slave Interface: eth2\nSpeed\n",
			"802.3ad", []string{"eth1", "eth2"}},
		{"Bonding Mode: fault-tolerance (active-backup) (fail_over_mac active)\n" +
			"Primary Slave: em3 (primary_reselect failure)\nCurrently Active Slave: em3\n\n" +
			"Slave Interface: em3\nLink Failure Count: 92028\n\nSlave Interface: p2p3\n",
			"active-backup", []string{"em3", "p2p3"}},
		{"Bonding Mode: load balancing (round-robin)\n", "balance-rr", nil},
		{"Bonding Mode: load balancing (xor)\nTransmit Hash Policy: layer2+3 (2)\n", "balance-xor", nil},
		{"Ethernet Channel Bonding Driver: v5.10.0-8-amd64\n\nBonding Mode: transmit load balancing\n", "balance-tlb", nil},
		{"Bonding Mode: adaptive load balancing\n", "balance-alb", nil},
		{"Bonding Mode: reverse proximity hash combination mode\n", "", nil},
		{"Link Failure Count: 0\nAggregator ID:\n", "", nil},
	} {
		mode, members := ParseBond(c.text)
		equal(t, c.text, c.mode, mode)
		equal(t, c.text, c.members, members)
	}
}
