package nicstat

import (
	"slices"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		driver, name string
		class        Class // empty: not known
		part         string
	}{
		{"e1000", "rx_missed_errors", RingFull, "MPC"},
		{"never heard of", "rx_missed_errors", RingFull, "receive ring"},
		{"ixgbe", "rx_no_dma_resources", RingFull, "descriptor"},
		{"ixgbe", "rx_crc_errors", Damaged, "checksum"}, // the common one
		{"igb", "rx_queue_17_drops", RingFull, "RQDPC"},
		{"mlx5_core", "rx_prio3_discards", Bus, "priority"},
		{"ena", "queue_0_rx_page_alloc_fail", NoMemory, "page"},
		{"ena", "bw_in_allowance_exceeded", Allowance, "receive"},
		{"ice", "rx_dropped", RingFull, "descriptor"},
		{"veth", "rx_dropped", Software, "kernel dropped"},
		{"vmxnet3", "pkts rx OOB", RingFull, "buffer"},
		{"be2net", "rxq12: rx_drops_no_frags", RingFull, "posted"},
		{"e1000", "rx_packets", "", ""},
		{"", "", "", ""},
	} {
		e, ok := Lookup(c.driver, c.name)
		if ok != (c.class != "") || e.Class != c.class || !strings.Contains(e.Meaning, c.part) || ok && e.Source == "" {
			t.Errorf("%s %s: %+v %v", c.driver, c.name, e, ok)
		}
	}
}

// TestDictionary holds meanings to one line that can follow a number: they begin in lower case, end
// without a full stop, and are short.
func TestDictionary(t *testing.T) {
	d, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, driver := range []string{"e1000", "e1000e", "igb", "ixgbe", "i40e", "ice", "mlx5_core", "bnxt_en",
		"virtio_net", "vmxnet3", "r8169", "tg3", "ena", "be2net", "bnx2", "bnx2x", "qede", "mlx4_en", "sfc", "cxgb4",
		"atlantic", "ixgbevf", "igbvf", "iavf", "nfp", "hns3", "enic"} {
		if !slices.Contains(Drivers(), driver) {
			t.Errorf("%s has no entries", driver)
		}
	}
	for driver, counters := range d {
		for name, e := range counters {
			if strings.HasSuffix(e.Meaning, ".") || strings.ContainsAny(e.Meaning[:1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") ||
				len(e.Meaning) > 170 {
				t.Errorf("%s %s: %q", driver, name, e.Meaning)
			}
			if shape(name) != name {
				t.Errorf("%s %s has digits and can never be found", driver, name)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{
		`{`,
		`[{"drivers":["x"],"source":"s","counters":[{"name":"a","class":"no-such","meaning":"m"}]}]`,
		`[{"drivers":["x"],"source":"","counters":[{"name":"a","class":"bus","meaning":"m"}]}]`,
		`[{"drivers":["x"],"source":"s","counters":[{"name":"a","class":"bus","meaning":""}]}]`,
		`[{"drivers":["x"],"source":"s","counters":[{"name":"a","class":"bus","meaning":"m"},` +
			`{"name":"a","class":"bus","meaning":"m"}]}]`,
		`[{"drivers":["x"],"source":"s","counters":[{"name":"a","also":["b","b"],"class":"bus","meaning":"m"}]}]`,
		`[{"drivers":["x"],"source":"s","counters":[{"name":"a","class":"bus","meaning":"m"}]},` +
			`{"drivers":["y","x"],"source":"s","counters":[{"name":"b","also":["a"],"class":"bus","meaning":"m"}]}]`,
	} {
		if d, err := parse([]byte(bad)); err == nil {
			t.Errorf("%s: taken: %v", bad, d)
		}
	}
}

// TestDrop: events, packets that only waited, and packets that no program misses are no drops.
func TestDrop(t *testing.T) {
	for _, c := range []struct {
		driver, name string
		want         bool
	}{
		{"*", "rx_missed_errors", true}, {"*", "tx_dropped", true}, {"*", "rx_crc_errors", false},
		{"*", "rx_nohandler", false},
		{"igb", "rx_queue_3_drops", true}, {"igb", "rx_no_buffer_count", false},
		{"igb", "rx_queue_3_alloc_failed", false},
		{"mlx5_core", "rx_out_of_buffer", true}, {"mlx5_core", "outbound_pci_stalled_rd_events", false},
		{"mlx5_core", "outbound_pci_buffer_overflow", true},
		{"ena", "conntrack_allowance_exceeded", true}, {"ena", "pps_allowance_exceeded", false},
		{"ena", "rx_overruns", true},
	} {
		if e, ok := Lookup(c.driver, c.name); !ok || e.Drop != c.want {
			t.Errorf("%s of %s: %+v, %v", c.name, c.driver, e, ok)
		}
	}
}

func TestQueue(t *testing.T) {
	for name, want := range map[string][2]string{
		"rx_queue_0_packets": {"rx-0", "packets"}, "tx_queue_63_tx_timeouts": {"tx-63", "tx_timeouts"},
		"rx0_xdp_drops": {"rx-0", "xdp_drops"},
		"tx12_bytes":    {"tx-12", "bytes"}, "rx-7.packets": {"rx-7", "packets"},
		"rx-7.rx_packets": {"rx-7", "packets"}, "tx-0.tx_packets": {"tx-0", "packets"},
		"rxq0_packets": {"rx-0", "packets"}, "txq12_busy": {"tx-12", "busy"}, "rxq_3_pkts": {"rx-3", "pkts"},
		"rq[0]_packets": {"rx-0", "packets"}, "wq[2]_stopped": {"tx-2", "stopped"},
		"0: rcv_pkts": {"rx-0", "pkts"}, "11_0: xmit_pkts": {"tx-11", "pkts"},
		"2: rx_alloc_errors": {"rx-2", "alloc_errors"}, "0_0: tx_mem_alloc_err": {"tx-0", "mem_alloc_err"},
		"Queue[0] InPackets": {"rx-0", "packets"}, "Queue[7] OutPackets": {"tx-7", "packets"},
		"queue_3_tx_cnt": {"tx-3", "cnt"},
		"rx_packets[5]":  {"rx-5", "packets"},
		"rxq3: rx_pkts":  {"rx-3", "pkts"},
		"rx_q-0_pkts":    {"rx-0", "pkts"}, "tx_q-15_lso_pkts": {"tx-15", "lso_pkts"},
		"rx_0_packets": {"rx-0", "packets"}, "rx_63_bytes": {"rx-63", "bytes"}, "tx_127_pkts": {"tx-127", "pkts"},
		"rx_64_bytes": {}, "rx_64_byte_packets": {}, "tx_65_127_bytes": {}, "rx_0_csum_none": {},
		"[14]: rx_ucast_packets": {"rx-14", "ucast_packets"}, "rx_queue_007_drops": {"rx-7", "drops"},
		"rx_packets": {}, "rx_prio3_pause": {}, "tx_65_to_127_byte_packets": {}, "rx_queue_x_drops": {},
		"ch0_events": {}, "": {}, "rx_queue_123456_x": {},
		"Queue[0] Polls": {}, "rvec_0_rx_pkts": {}, "0_0: stopped_cnt": {}, "0_1: xmit_pkts": {}, "10:20: rx_x": {},
	} {
		if queue, counter, ok := Queue(name); queue != want[0] || counter != want[1] || ok != (want[0] != "") {
			t.Errorf("%q: %q of %q, %v", name, counter, queue, ok)
		}
	}
}

func TestInterruptQueue(t *testing.T) {
	for name, want := range map[string]string{
		"eth0-TxRx-3": "3", "i40e-ens1f0-TxRx-12": "12", "ens5-Tx-Rx-0": "0", "eth0-rxtx-1": "1", "eth0-fp-07": "7",
		"mlx5_comp3@pci:0000:03:00.0": "3", "mlx4-7@0000:03:00.0": "7",
		"eth0-q5": "5", "eth0-rx-1": "rx-1", "eth0-tx-0": "tx-0", "ens1f4-Rx3": "rx-3", "virtio0-input.0": "rx-0",
		"virtio0-output.11": "tx-11", "eth0.100-TxRx-1": "1",
		"eth0": "", "rx1": "rx-1", "virtio0-config": "", "virtio3-rx": "", "mlx5_async0@pci:0000:03:00.0": "",
		"eth0-TxRx-": "", "nvme0q5": "", "matrx-1": "", "": "",
	} {
		if queue, ok := InterruptQueue(name); queue != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, queue, ok, want)
		}
	}
}

// FuzzNames: a queue's name has the form of sysfs, and a lookup never invents an entry.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"rx_queue_0_drops", "rx0_packets", "[1]: tx_bytes", "rx-1.x", "queue_1_rx_cnt",
		"rx_a[1]", "rx_missed_errors", "rxq_1_x", "wq[1]_x", "1_0: xmit_x", "Queue[1] InX"} {
		f.Add(seed, "igb")
	}
	f.Fuzz(func(t *testing.T, name, driver string) {
		if queue, counter, ok := Queue(name); ok && (counter == "" || !strings.HasPrefix(queue, "rx-") &&
			!strings.HasPrefix(queue, "tx-") || len(queue)+len(counter) > len(name)) {
			t.Errorf("%q: %q of %q", name, counter, queue)
		}
		if queue, ok := InterruptQueue(name); ok != (queue != "") || len(queue) > len(name)+3 {
			t.Errorf("%q: queue %q", name, queue)
		}
		if e, ok := Lookup(driver, name); ok && e.Meaning == "" {
			t.Errorf("%q means nothing", name)
		}
	})
}

// FuzzDictionary: parse accepts a dictionary only if every entry is sound.
func FuzzDictionary(f *testing.F) {
	f.Add([]byte(`[{"drivers":["x","*"],"source":"s","counters":[{"name":"a_#","class":"bus","meaning":"m"}]}]`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parse(b)
		for driver, counters := range d {
			for name, e := range counters {
				if err != nil || e.Meaning == "" || e.Source == "" || !slices.Contains(classes, e.Class) {
					t.Errorf("%q %q: %+v, %v", driver, name, e, err)
				}
			}
		}
	})
}

func TestOutbound(t *testing.T) {
	for counter, want := range map[string]bool{
		"tx_dropped": true, "port.tx_dropped_link_down": true, "txq0_busy": true, "txq#_busy": true, "tx0_timeout": true,
		"wq[0]_stopped": true, "0_0: xmit_drop": true, "dev_tx_discards": true, "mac.tx_queue_drop": true,
		"tx-3.tx_busy": true, "rx_dropped": false, "rq[0]_no_skb": false, "outbound_pci_buffer_overflow": false,
		"rx_ctx_errors": false, "0: rcv_pkts": false,
	} {
		if got := Outbound(counter); got != want {
			t.Errorf("%s: %v", counter, got)
		}
	}
}
