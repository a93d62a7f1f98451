package testenv

import (
	"os"
	"testing"
)

// TestFreePortsBesideMany: another process has the whole part in which this one begins.
func TestFreePortsBesideMany(t *testing.T) {
	part := firstPort + os.Getpid()%portParts*partPorts
	for port := part; port < part+partPorts; port++ {
		reserved(t, port)
	}
	if first := FreePorts(t, 2); first >= part && first < part+partPorts {
		t.Errorf("port %d, which is held", first)
	}
}
