package live

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
)

// irqKnobs are files of /proc/irq/N (Documentation/core-api/irq/irq-affinity.rst).
//
// The request and its effect are two files: an interrupt controller that can use only one CPU picks
// one of the set, and smp_affinity_list still shows the whole set. So affinity reads back as
// written, and effective_affinity shows where the interrupts arrive.
type irqKnobs struct{ root string } // /proc/irq

func (k irqKnobs) file(number, attribute string) (string, error) {
	if strings.Trim(number, "0123456789") != "" {
		return "", fmt.Errorf("%w: an interrupt has a number", fs.ErrNotExist)
	}
	switch attribute {
	case "affinity":
		return filepath.Join(k.root, number, "smp_affinity_list"), nil
	case "effective_affinity":
		return filepath.Join(k.root, number, "effective_affinity_list"), nil
	}
	return "", fmt.Errorf("%w: interrupt attribute %s", knob.ErrNotSupported, attribute)
}

func (k irqKnobs) read(number, attribute string) (knob.Value, error) {
	file, err := k.file(number, attribute)
	if err != nil {
		return "", err
	}
	return readPseudo(unix.AT_FDCWD, file)
}

// Both errnos mean that no process may move this interrupt: its driver lets the kernel spread it (a
// managed interrupt, as of NVMe queues), or the controller cannot move it. The kernel version
// decides which one is returned. An unprivileged process fails earlier, because it cannot open the
// file.
func (k irqKnobs) write(number, attribute string, v knob.Value) error {
	file, err := k.file(number, attribute)
	if err != nil {
		return err
	}
	err = writePseudo(unix.AT_FDCWD, file, v)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w: the kernel places this interrupt itself, or its controller cannot move it: %w",
			knob.ErrReadOnly, err)
	}
	return err
}

func (k irqKnobs) check(number, attribute string, _ knob.Value) error {
	file, err := k.file(number, attribute)
	if err != nil {
		return err
	}
	return checkPseudo(unix.AT_FDCWD, file)
}
