package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// driveFile is the file of a drive in the directory of its guest.
func driveFile(i int) string { return "drive" + strconv.Itoa(i) }

// makeDrives makes the files of drives, which have no blocks yet.
func makeDrives(dir string, drives []Drive) error {
	for i, d := range drives {
		name := filepath.Join(dir, driveFile(i))
		err := os.WriteFile(name, nil, 0o600)
		if err == nil {
			err = os.Truncate(name, d.SizeBytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// driveArguments returns QEMU's arguments for drives, whose files are in its working directory.
func driveArguments(drives []Drive) (args []string) {
	for i, d := range drives {
		id := driveFile(i)
		drive := fmt.Sprintf("file=%s,format=raw,if=none,id=%s,cache=unsafe", id, "file"+id)
		if d.OperationsPerSec > 0 {
			drive += fmt.Sprintf(",throttling.iops-total=%d", d.OperationsPerSec)
		}
		if d.BytesPerSec > 0 {
			drive += fmt.Sprintf(",throttling.bps-total=%d", d.BytesPerSec)
		}
		// A device can be unplugged from a port of its own only.
		port := "port" + id
		args = append(args, "-drive", drive, "-device", fmt.Sprintf("pcie-root-port,id=%s,chassis=%d", port, 100+i),
			"-device", fmt.Sprintf("virtio-blk-pci,id=%s,drive=file%s,bus=%s", id, id, port))
	}
	return args
}

// monitor is QEMU's control channel, in the QEMU Machine Protocol: JSON objects.
type monitor struct {
	net.Conn
	answers *json.Decoder
}

// newMonitor returns the channel and QEMU's end of it.
func newMonitor() (*monitor, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "monitor"), os.NewFile(uintptr(fds[1]), "monitor's end")
	defer ours.Close() // FileConn has a copy
	c, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return &monitor{c, json.NewDecoder(c)}, theirs, nil
}

// execute sends a command and waits for its return. Events and the greeting come in between.
func (m *monitor) execute(command string, arguments map[string]any) error {
	if err := json.NewEncoder(m).Encode(map[string]any{"execute": command, "arguments": arguments}); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	for {
		var answer struct {
			Return *json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := m.answers.Decode(&answer); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		switch {
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", command, answer.Error.Desc)
		case answer.Return != nil:
			return nil
		}
	}
}

// Unplug asks the guest to let go of a drive, as the button beside the slot of a hot-plug bay does.
// The guest's kernel removes the drive five seconds later (pciehp), also in the middle of its work.
// Run may run meanwhile.
func (g *Guest) Unplug(ctx context.Context, drive int) error {
	stop := context.AfterFunc(ctx, func() { _ = g.monitor.Close() })
	defer stop()
	err := g.monitor.execute("qmp_capabilities", map[string]any{})
	if err == nil {
		err = g.monitor.execute("device_del", map[string]any{"id": driveFile(drive)})
	}
	if err != nil {
		return fmt.Errorf("unplug drive %d: %w", drive, err)
	}
	return nil
}
