package nicstat_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/linerate/linerate/internal/host/drops"
)

// TestLossesCountOnce: a driver counts the same packets by queue, in total and in the kernel's
// common counters. The list of drops has them once, at the place that names the reason.
func TestLossesCountOnce(t *testing.T) {
	for driver, c := range map[string]struct {
		counters map[string]uint64
		want     map[string]uint64
	}{
		"bnx2x": {map[string]uint64{
			"ethtool.e.[0]: rx_discards": 10, "ethtool.e.[1]: rx_discards": 20, "ethtool.e.rx_discards": 30,
			"nic.e.rx_fifo_errors": 30, "ethtool.e.rx_brb_discard": 7, "ethtool.e.rx_brb_truncate": 2,
			"nic.e.rx_over_errors": 9,
		}, map[string]uint64{"nic.e.rx_fifo_errors": 30, "nic.e.rx_over_errors": 9}},
		"bnx2": {map[string]uint64{
			"ethtool.e.rx_fw_discards": 10, "ethtool.e.rx_discards": 20, "ethtool.e.rx_ftq_discards": 3,
			"nic.e.rx_missed_errors": 33, "nic.e.rx_over_errors": 23,
		}, map[string]uint64{"nic.e.rx_missed_errors": 33}},
		"atlantic": {map[string]uint64{"ethtool.e.InDroppedDma": 30, "nic.e.rx_dropped": 33},
			map[string]uint64{"ethtool.e.InDroppedDma": 30, "nic.e.rx_dropped": 3}},
		"enic": {map[string]uint64{"ethtool.e.rx_no_bufs": 30, "nic.e.rx_dropped": 30},
			map[string]uint64{"ethtool.e.rx_no_bufs": 30}},
		"sfc": {map[string]uint64{"ethtool.e.port_rx_nodesc_drops": 30, "ethtool.e.rx_noskb_drops": 2,
			"nic.e.rx_dropped": 32},
			map[string]uint64{"ethtool.e.port_rx_nodesc_drops": 30, "ethtool.e.rx_noskb_drops": 2}},
		"cxgb4": {map[string]uint64{"ethtool.e.rx_bg0_frames_dropped": 10, "ethtool.e.rx_bg1_frames_dropped": 20,
			"nic.e.rx_dropped": 30},
			map[string]uint64{"ethtool.e.rx_bg#_frames_dropped": 30}},
		"iavf": {map[string]uint64{"ethtool.e.rx_discards": 30, "nic.e.rx_dropped": 30, "ethtool.e.tx_discards": 4,
			"nic.e.tx_dropped": 4},
			map[string]uint64{"ethtool.e.rx_discards": 30, "ethtool.e.tx_discards": 4}},
		// What nfp drops for another address is no loss, so its own counter is not one.
		"nfp": {map[string]uint64{"ethtool.e.dev_rx_discards": 30, "nic.e.rx_dropped": 30,
			"ethtool.e.dev_tx_discards": 4, "nic.e.tx_dropped": 4},
			map[string]uint64{"nic.e.rx_dropped": 30, "ethtool.e.dev_tx_discards": 4}},
		"nicvf": {map[string]uint64{"ethtool.e.rx_drop_red": 10, "ethtool.e.rx_drop_overrun": 20,
			"ethtool.e.rx_drops": 30, "nic.e.rx_dropped": 30},
			map[string]uint64{"ethtool.e.rx_drops": 30}},
	} {
		got := make(map[string]uint64)
		for _, d := range drops.Find(c.counters, map[string]string{"e": driver}) {
			got[d.Place] = d.Total
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", driver, d)
		}
	}
}
