package nicstat

import (
	"strconv"
	"strings"
	"testing"
)

// outputs are lines of "ethtool -S" that others published: name and figure, then the class that the
// dictionary must give, and "lost" if each count is a lost packet. A line without a class is good
// traffic, or not a loss, and must have no entry.
var outputs = []struct{ driver, source, lines string }{
	{"bnx2", "Ubuntu Forums, 2015-04-20: a BCM5709 whose switch port has the wrong duplex mode", `
		rx_bytes: 26452913865
		rx_ucast_packets: 48304551
		tx_mac_errors: 0
		rx_crc_errors: 1294846 damaged
		rx_align_errors: 0 damaged
		tx_excess_collisions: 0 half-duplex
		tx_late_collisions: 0 half-duplex
		rx_fragments: 120 damaged
		rx_jabbers: 256287 damaged
		rx_undersize_packets: 0 damaged
		rx_oversize_packets: 0 size
		rx_64_byte_packets: 2820562
		rx_1523_to_9022_byte_packets: 0
		rx_xon_frames: 70794
		rx_xoff_frames: 393674 held
		tx_xoff_frames: 0 held
		rx_mac_ctrl_frames: 0
		rx_filtered_packets: 466020 unwanted
		rx_ftq_discards: 0 ring-full lost
		rx_discards: 0 ring-full lost
		rx_fw_discards: 0 ring-full lost`},
	{"bnx2x", "github.com/isc-projects/ethq, issue 6: a BCM57840", `
		[0]: rx_bytes: 209487403324
		[0]: rx_ucast_packets: 194386668
		[0]: rx_discards: 0 ring-full lost
		[0]: rx_phy_ip_err_discards: 0 damaged
		[0]: rx_skb_alloc_discard: 0 no-memory lost
		[0]: rx_csum_offload_errors: 0
		[0]: tx_exhaustion_events: 0 held
		[0]: tpa_aggregated_frames: 133512833
		[0]: driver_filtered_tx_pkt: 0
		[1]: rx_ucast_packets: 170492982
		[1]: rx_discards: 0 ring-full lost`},
	{"bnx2x", "entstat -d of AIX for a Broadcom card, whose firmware's counters have the same names", `
		rx_ucast_packets: 113633934
		rx_undersize_packets: 0 damaged
		rx_oversize_packets: 0 size
		rx_discards: 0 ring-full lost
		rx_filtered_packets: 0 unwanted
		rx_mf_tag_discard: 0 unwanted
		pfc_frames_received: 0 held
		rx_brb_discard: 0 bus lost
		rx_brb_truncate: 0 bus lost
		rx_pause_frames: 0 held
		rx_constant_pause_events: 0
		rx_phy_ip_err_discards: 0 damaged
		tx_late_collisions: 0 half-duplex
		tx_64_byte_packets: 194`},
	{"qede", "an article on network analysis: ethtool -S p2p1 after a reproducer", `
		no_buff_discards: 25264 ring-full lost`},
	{"mlx4_en", "github.com/isc-projects/ethq, issue 21: a ConnectX-3", `
		rx_packets: 555096842386
		tx_bytes: 2318032604142833
		tx0_packets: 48124213736
		rx0_packets: 17378347578
		rx0_bytes: 2258956208915`},
	// Of 3 045 991 334 good packets, 273 312 477 reached a queue: the others matched no filter.
	{"sfc", "github.com/influxdata/telegraf, plugins/inputs/ethtool/ethtool_test.go", `
		port_rx_128_to_255: 1573526387
		port_rx_bad: 0 damaged
		port_rx_bad_bytes: 0
		port_rx_bad_gtjumbo: 0 damaged
		port_rx_dp_di_dropped_packets: 2772680304 unwanted
		port_rx_dp_hlb_fetch: 0
		port_rx_dp_q_disabled_packets: 0 unwanted
		port_rx_good: 3045991334
		port_rx_lt64: 0 damaged
		port_rx_64: 8798065
		port_rx_nodesc_drops: 0 ring-full lost
		port_rx_overflow: 0 bus lost
		port_rx_pause: 0 held
		port_rx_pm_discard_bb_overflow: 0 bus lost
		port_rx_pm_discard_mapping: 0
		port_rx_pm_trunc_vfifo_full: 0 bus lost
		port_tx_pause: 0 held
		ptp_good_syncs: 136151
		rx-0.rx_packets: 55659234
		rx_mcast_mismatch: 0 unwanted
		rx_nodesc_trunc: 0 ring-full lost
		rx_noskb_drops: 0 no-memory lost
		rx_tcp_udp_chksum_err: 0
		tx_pushes: 604643378`},
	{"sfc", "README of netmon, a monitor of hosts with much UDP", `
		port_rx_nodesc_drops: 946553 ring-full lost`},
	// 512 packets more from the wire in 26 seconds, 657 dropped, none to memory: the card was stuck.
	{"atlantic", "github.com/AsahiLinux/linux, issue 483", `
		InPackets: 4997686207
		InPacketsDma: 5150351681
		InDroppedDma: 5078 ring-full lost
		Queue[7] InPackets: 128451109`},
	{"atlantic", "github.com/quinn-rs/quinn, issue 2202", `
		InErrors: 0
		OutUCast: 1628867874
		InDroppedDma: 0 ring-full lost
		Queue[0] InJumboPackets: 0
		Queue[0] AllocFails: 0 no-memory
		Queue[0] SkbAllocFails: 0 no-memory
		Queue[0] Polls: 20819311
		Queue[0] PageReuses: 4126651
		Queue[0] XdpDrop: 0 software lost
		Queue[0] XdpPass: 0
		Queue[0] Restarts: 0 held
		Queue[1] InErrors: 1`},
	// rx_frames_total less rx_frames_ok is exactly rx_no_bufs.
	{"enic", "netdev, 2024-08-23, Expand statistics reported in ethtool", `
		tx_frames_ok: 23093667316
		tx_drops: 0 software lost
		tx_errors: 0
		rx_frames_ok: 36167593711
		rx_frames_total: 36178256385
		rx_drop: 0
		rx_no_bufs: 10662674 ring-full lost
		rx_crc_errors: 0 damaged
		rx_frames_1518: 35776557376
		rq[0]_packets: 15203911650
		rq[0]_napi_repoll: 218149461
		rq[0]_bad_fcs: 0 damaged
		rq[0]_no_skb: 0 no-memory
		wq[0]_packets: 1156987579
		wq[0]_stopped: 0 held
		wq[0]_wake: 0`},
	{"iavf", "DPDK test plans: a virtual function of an X710 with the kernel's driver", `
		rx_unicast: 0
		rx_discards: 0 ring-full lost
		rx_unknown_protocol: 0 unwanted
		tx_discards: 0 software lost
		tx-0.packets: 0`},
	{"st_gmac", "github.com/bigtreetech/CB2, issue 21", `
		mmc_tx_framecount_gb: 331037
		mmc_tx_underflow_error: 0 bus lost
		mmc_tx_latecol: 0 half-duplex
		mmc_tx_pause_frame: 0 held
		mmc_rx_framecount_gb: 162558
		mmc_rx_multicastframe_g: 3456
		mmc_rx_crc_error: 0 damaged
		mmc_rx_jabber_error: 0 damaged
		mmc_rx_oversize_g: 0
		mmc_rx_1024_to_max_octets_gb: 0`},
}

func TestPublishedOutputs(t *testing.T) {
	for _, o := range outputs {
		for line := range strings.Lines(strings.TrimSpace(o.lines)) {
			colon := strings.LastIndex(line, ": ")
			name, rest := strings.TrimSpace(line[:colon]), strings.Fields(line[colon+1:])
			if _, err := strconv.ParseUint(rest[0], 10, 64); err != nil {
				t.Errorf("%s: %q: %v", o.source, line, err)
			}
			rest = append(rest, "", "")
			e, ok := Lookup(o.driver, name)
			if ok != (rest[1] != "") || string(e.Class) != rest[1] || e.Drop != (rest[2] == "lost") {
				t.Errorf("%s, %s of %s: %+v, %v", o.source, name, o.driver, e, ok)
			}
		}
	}
}

// TestNoDoubleCount: where a driver sums its own counter into a common one, both have the same
// class, so that a reader who takes the largest of a class counts the packets once.
func TestNoDoubleCount(t *testing.T) {
	for driver, pairs := range map[string][][2]string{
		"bnx2x": {{"rx_fifo_errors", "rx_discards"}, {"rx_fifo_errors", "[3]: rx_discards"},
			{"rx_over_errors", "rx_brb_discard"}, {"rx_over_errors", "rx_brb_truncate"}},
		"bnx2": {{"rx_missed_errors", "rx_fw_discards"}, {"rx_over_errors", "rx_discards"},
			{"rx_over_errors", "rx_ftq_discards"}},
		"qede":    {{"rx_fifo_errors", "no_buff_discards"}},
		"mlx4_en": {{"rx_missed_errors", "rx_fifo_errors"}, {"rx_over_errors", "rx_fifo_errors"}},
		"sfc":     {{"rx_fifo_errors", "rx_overflow"}, {"rx_crc_errors", "rx_bad"}},
		"hns3":    {{"rx_crc_errors", "rxq12_l2_err"}, {"rx_length_errors", "rxq12_err_pkt_len"}},
		"st_gmac": {{"rx_missed_errors", "rx_missed_cntr"}, {"rx_over_errors", "rx_overflow_cntr"}},
	} {
		for _, pair := range pairs {
			common, _ := Lookup(driver, pair[0])
			own, _ := Lookup(driver, pair[1])
			if own.Class == "" || common.Class != own.Class {
				t.Errorf("%s: %s is %q, %s is %q", driver, pair[0], common.Class, pair[1], own.Class)
			}
		}
	}
}

// TestHeldTransmission: diagnose takes every counter of this class with tx in its name for the
// times that a transmit ring was full, except pauses, which it knows by their names.
func TestHeldTransmission(t *testing.T) {
	for driver, counters := range dictionary() {
		for name, e := range counters {
			if e.Class == Held && strings.Contains(name, "tx") && !strings.HasSuffix(e.Meaning, eventMark) &&
				!strings.Contains(name, "pause") && !strings.Contains(name, "xoff") {
				t.Errorf("%s of %s looks like a full transmit ring", name, driver)
			}
		}
	}
}

// TestTransmitIsNoRing: the finding on receive rings takes the largest counter of its class, so no
// counter of transmission may have it.
func TestTransmitIsNoRing(t *testing.T) {
	for driver, counters := range dictionary() {
		for name, e := range counters {
			if e.Class == RingFull && strings.Contains(name, "tx") {
				t.Errorf("%s of %s is a receive ring", name, driver)
			}
		}
	}
}
