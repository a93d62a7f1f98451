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
		args = append(args, "-drive", drive)
		controller := "controller" + id
		switch d.Bus {
		case "scsi":
			args = append(args, "-device", "virtio-scsi-pci,id="+controller, "-device",
				fmt.Sprintf("scsi-hd,id=%s,drive=file%s,bus=%s.0", id, id, controller))
		case "usb":
			args = append(args, "-device", "qemu-xhci,id="+controller, "-device",
				fmt.Sprintf("usb-storage,id=%s,drive=file%s,bus=%s.0", id, id, controller))
		default: // a device can be unplugged from a port of its own only
			args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=%s,chassis=%d", controller, 100+i),
				"-device", fmt.Sprintf("virtio-blk-pci,id=%s,drive=file%s,bus=%s", id, id, controller))
		}
	}
	return args
}

// monitor is QEMU's control channel, in the QEMU Machine Protocol: JSON objects.
type monitor struct {
	net.Conn
	answers *json.Decoder
	agreed  bool // about capabilities, which QEMU wants once before any command
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
	return &monitor{Conn: c, answers: json.NewDecoder(c)}, theirs, nil
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

// Unplug removes a drive, also in the middle of its work. A virtio disk asks the guest to let go,
// as the button beside the slot of a hot-plug bay does, and the guest's kernel removes it five
// seconds later (pciehp). A SCSI or USB disk is gone at once. Run may run meanwhile.
func (g *Guest) Unplug(ctx context.Context, drive int) error {
	stop := context.AfterFunc(ctx, func() { _ = g.monitor.Close() })
	defer stop()
	var err error
	if !g.monitor.agreed {
		err = g.monitor.execute("qmp_capabilities", map[string]any{})
	}
	if err == nil {
		g.monitor.agreed = true
		err = g.monitor.execute("device_del", map[string]any{"id": driveFile(drive)})
	}
	if err != nil {
		return fmt.Errorf("unplug drive %d: %w", drive, err)
	}
	return nil
}
