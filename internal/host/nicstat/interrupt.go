package nicstat

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// interruptForm matches how drivers name the interrupt of a queue: its purpose and number, at
// the end or before the device's address. eth0-TxRx-3: the NICs of Intel and many others;
// eth0-rx-1: e1000e, tg3; ens5-Tx-Rx-0: ena; eth0-rxtx-0: vmxnet3; eth0-fp-2: bnx2x, qede;
// virtio0-input.0: virtio_net; mlx5_comp3@pci:0000:03:00.0: mlx5; mlx4-7@0000:03:00.0: mlx4;
// ens1f4-Rx3: cxgb4; eth0-q5: be2net.
var interruptForm = pattern.New(
	`(?i)(?:^|[-_ ])(tx-?rx|rx-?tx|rx|tx|fp|input|output|comp|mlx4|q)[-.]?(\d{1,5})(?:@.*)?$`)

// InterruptQueue returns the queue that an interrupt of /proc/interrupts serves: rx-3 or tx-3 as in
// sysfs, or 3 if one interrupt serves the queues of that number in both directions. ok is false for
// an interrupt that serves no queue (link changes, commands) and for a name of unknown form.
func InterruptQueue(name string) (queue string, ok bool) {
	m := interruptForm.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	number := strings.TrimLeft(m[2], "0")
	if number == "" {
		number = "0"
	}
	switch strings.ToLower(m[1]) {
	case "rx", "input":
		return "rx-" + number, true
	case "tx", "output":
		return "tx-" + number, true
	}
	return number, true
}
