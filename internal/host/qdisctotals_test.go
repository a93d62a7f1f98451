package host

import "testing"

// TestQdiscTotals: what filters drop is counted beside the queues of the same interface, whichever
// of the two dropped more before. The largest figure alone stood still while a policer dropped less
// than the queue had dropped since boot.
func TestQdiscTotals(t *testing.T) {
	fact := func(name, kind string, drops uint64) qdiscFact {
		return qdiscFact{Interface: name, Kind: kind, QdiscState: QdiscState{Drops: drops}}
	}
	qdiscs := func(policed uint64) []qdiscFact {
		return []qdiscFact{fact("eth0", "mq", 9000), fact("eth0", "fq_codel", 6000), fact("eth0", "clsact", policed),
			fact("eth1", "fq", 50)}
	}
	total := func(qdiscs []qdiscFact, name string) uint64 {
		n, _ := filterDrops(qdiscs, name)
		return qdiscTotals(qdiscs)[name].Drops + n
	}
	before, after := qdiscs(0), qdiscs(962)
	if d := total(after, "eth0") - total(before, "eth0"); d != 962 {
		t.Errorf("%d packets dropped by the policer, want 962", d)
	}
	if total(after, "eth0") != 9962 || total(after, "eth1") != 50 {
		t.Errorf("totals are %d and %d", total(after, "eth0"), total(after, "eth1"))
	}
	if _, ok := filterDrops(after, "eth1"); ok {
		t.Error("eth1 has no filters")
	}
}
