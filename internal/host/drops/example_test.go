package drops_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/host/drops"
)

// A hundred datagrams are missing. The receiving socket counted 60 of them, the receive ring 30. No
// counter explains the rest, so the path lost it.
func ExampleLosses() {
	receiver := map[string]uint64{"nic.eth0.rx_missed_errors": 30, "Udp.RcvbufErrors": 60}
	for _, l := range drops.Losses(100, drops.SocketDrops{Received: 60}, nil, receiver) {
		fmt.Printf("%s %d %q\n", l.Place, l.Packets, l.Source)
	}
	// Output:
	// path 10 ""
	// receiver-ring 30 "nic.eth0.rx_missed_errors"
	// receiver-socket 60 "SO_RXQ_OVFL"
}
