package traffictest

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Ports of tests are between well-known ones and those that the kernel gives by itself (32768 and up, ip(7)), so nobody gets them by accident.
// Each process has a part of them to itself, as tests of several packages run at a time.
const (
	firstPort = 12000
	portParts = 20
	partPorts = 1000
)

// nextPort counts through this process's part.
var nextPort atomic.Int32

// FreePorts is the first of n ports in a row on which nobody listens at this moment, neither with TCP nor with UDP, and which no other test of this
// process is given soon.
func FreePorts(t testing.TB, n int) int {
	t.Helper()
	for range 100 {
		at := int(nextPort.Add(int32(n))) % (partPorts - n)
		first := firstPort + os.Getpid()%portParts*partPorts + at
		free := true
		for port := first; port < first+n && free; port++ {
			free = !taken(port)
		}
		if free {
			return first
		}
	}
	t.Fatalf("no %d ports in a row are free for both TCP and UDP", n)
	return 0
}

// AwaitListener waits until somebody listens on a port, with TCP or UDP.
func AwaitListener(t testing.TB, port int) {
	t.Helper()
	for until := time.Now().Add(patience / 2); !taken(port); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("nobody listens on port %d", port)
		}
	}
}

// taken tells whether somebody listens on a port, by trying to do the same. Connecting would tell as well, but a server for a single client would take
// that for its one.
func taken(port int) bool {
	address := ":" + strconv.Itoa(port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	_ = l.Close() // nobody has come
	pc, err := net.ListenPacket("udp", address)
	if err != nil {
		return true
	}
	_ = pc.Close() // as above
	return false
}
