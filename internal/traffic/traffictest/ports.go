package traffictest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Ports of tests are between well-known ones and those that the kernel assigns (32768 and up,
// ip(7)), so no program gets them by accident. Each process has a part of them to itself, because
// tests of several packages run at a time.
const (
	firstPort = 12000
	portParts = 20
	partPorts = 1000
)

// nextPort counts through this process's part.
var nextPort atomic.Int32

// FreePorts returns the first of n ports in a row on which nothing listens at this moment, neither
// with TCP nor with UDP, and which no other test of this process gets soon.
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

// AwaitListener waits until a program listens on a port, with TCP or UDP.
//
// It reads the kernel's tables instead of binding the port for a moment: now and then that would be
// the moment in which the awaited server tries.
func AwaitListener(t testing.TB, port int) {
	t.Helper()
	for until := time.Now().Add(patience / 2); !listened(port); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("no program listens on port %d", port)
		}
	}
}

// taken reports whether a program listens on a port, by trying to do the same. A connection would
// show it as well, but a server for a single client would take that for its client.
func taken(port int) bool {
	address := ":" + strconv.Itoa(port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	_ = l.Close() // nothing has connected
	pc, err := net.ListenPacket("udp", address)
	if err != nil {
		return true
	}
	_ = pc.Close() // as above
	return false
}

// listened reports whether the kernel's tables have a socket that waits on a port: in state 0A
// (LISTEN) of TCP, 07 of UDP (proc_net_tcp.rst). On systems without those tables it tries to bind.
func listened(port int) bool {
	known := false
	for file, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil {
			continue
		}
		known = true
		suffix := fmt.Sprintf(":%04X", port)
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == state {
				return true
			}
		}
	}
	return !known && taken(port)
}
