package nicstat

import (
	"regexp"
	"strings"
)

// queueForms are the ways in which drivers name the counters of one queue, with an example each.
// The driver's name is of no help: it changes the form from one kernel to the next, as virtio_net
// did.
var queueForms = [...]struct {
	form                       *regexp.Regexp
	direction, number, counter int // which part is which
}{
	{regexp.MustCompile(`^(rx|tx)_queue_(\d{1,5})_(.+)$`), 1, 2, 3}, // rx_queue_0_packets: igb, ixgbe, ice, hv_netvsc, veth
	{regexp.MustCompile(`^(rx|tx)(\d{1,5})_(.+)$`), 1, 2, 3},        // rx0_packets: mlx5, mlx4, virtio_net since Linux 6.8
	{regexp.MustCompile(`^(rx|tx)-(\d{1,5})\.(.+)$`), 1, 2, 3},      // rx-0.packets: i40e, iavf, sfc
	{regexp.MustCompile(`^queue_(\d{1,5})_(rx|tx)_(.+)$`), 2, 1, 3}, // queue_0_rx_cnt: ena
	{regexp.MustCompile(`^(rx|tx)_(\w+)\[(\d{1,5})\]$`), 1, 3, 2},   // rx_packets[0]: gve
	{regexp.MustCompile(`^\[(\d{1,5})\]: (rx|tx)_(.+)$`), 2, 1, 3},  // [0]: rx_ucast_packets: bnxt_en
}

// Queue takes the name of a counter apart that belongs to one queue: "rx_queue_3_drops" is "drops"
// of "rx-3", by the name that sysfs has for the queue. False: it is no queue's, or of a driver with
// a form of its own.
func Queue(name string) (queue, counter string, ok bool) {
	// Most names have no digit, and this is asked of hundreds.
	if !strings.ContainsAny(name, "0123456789") {
		return "", "", false
	}
	for _, f := range queueForms {
		if m := f.form.FindStringSubmatch(name); m != nil {
			number := strings.TrimLeft(m[f.number], "0")
			if number == "" {
				number = "0"
			}
			return m[f.direction] + "-" + number, m[f.counter], true
		}
	}
	return "", "", false
}
