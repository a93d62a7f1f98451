package testenv

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Ports of tests are between well-known ones and those that the kernel assigns (32768 and up,
// ip(7)), so no program gets them by accident. Each process begins in a part of them, because
// tests of several packages run at a time.
const (
	firstPort = 12000
	portParts = 20
	partPorts = 1000
)

// awaitListener is how long a test waits for a server. It only guards against hanging.
const awaitListener = 2 * time.Minute

// nextPort counts the ports that this process has tried.
var nextPort atomic.Int32

// FreePorts returns the first of n ports in a row on which nothing listens at this moment, neither
// with TCP nor with UDP. Until the end of the test no other test gets them, on Linux not even one
// of another process: between this look and the start of a server nothing else would keep them.
func FreePorts(t testing.TB, n int) int {
	t.Helper()
	for try := range 100 {
		// Each process starts elsewhere: connections of one that has ended hold their ports for a
		// minute more (TIME_WAIT). Another process can have the same part and all places around this
		// one, so each further try is in another part.
		at := (os.Getpid()/portParts*37 + int(nextPort.Add(int32(n)))) % (partPorts - n)
		first := firstPort + (os.Getpid()+try)%portParts*partPorts + at
		free := true
		for port := first; port < first+n && free; port++ {
			free = reserved(t, port) && !taken(port)
		}
		if free {
			return first
		}
	}
	t.Fatalf("no %d ports in a row are free for both TCP and UDP", n)
	return 0
}

// reserved keeps a port for this test, and reports whether no other test has it. A name in the
// abstract namespace (unix(7)) belongs to a network namespace, as ports do, and ends with its
// holder.
func reserved(t testing.TB, port int) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	l, err := net.Listen("unix", fmt.Sprintf("@linerate-test-port-%d", port))
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = l.Close() }) // nothing connects
	return true
}

// AwaitListener waits until a program listens on a port, with TCP or UDP.
//
// It reads the kernel's tables instead of binding the port for a moment: now and then that would be
// the moment in which the awaited server tries.
func AwaitListener(t testing.TB, port int) {
	t.Helper()
	for until := time.Now().Add(awaitListener); !listened(port); time.Sleep(5 * time.Millisecond) {
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
