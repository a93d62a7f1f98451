package live

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// queueKnobs are files of the queues of an interface
// (Documentation/ABI/testing/sysfs-class-net-queues): which CPUs process a receive queue, which may
// use a transmit queue, and how much may wait in the NIC.
type queueKnobs struct{ sysfs sysfs }

// file returns the path of an attribute below the directory of its interface.
//
// The directory of byte queue limits exists only when the kernel supports them (3.3) and the driver
// counts what it sends (since 6.8, software devices without a queue lack it).
func (queueKnobs) file(subject, attribute string) (name, file string, err error) {
	name, queue, _ := strings.Cut(subject, "/")
	direction, number, _ := strings.Cut(queue, "-")
	if (direction != "rx" && direction != "tx") || number == "" || strings.Trim(number, "0123456789") != "" {
		return "", "", fmt.Errorf("%w: want a queue like rx-0 or tx-0", fs.ErrNotExist)
	}
	switch {
	case direction == "rx" && (attribute == "rps_cpus" || attribute == "rps_flow_cnt"),
		direction == "tx" && (attribute == "xps_cpus" || attribute == "xps_rxqs"):
		return name, path.Join("queues", queue, attribute), nil
	case direction == "tx" && (attribute == "bql_limit_max" || attribute == "bql_limit_min"):
		return name, path.Join("queues", queue, "byte_queue_limits", strings.TrimPrefix(attribute, "bql_")), nil
	}
	return "", "", fmt.Errorf("%w: attribute %s of a queue %s", knob.ErrNotSupported, attribute, queue)
}

func (k queueKnobs) read(subject, attribute string) (knob.Value, error) {
	name, file, err := k.file(subject, attribute)
	if err != nil {
		return "", err
	}
	v, err := k.sysfs.readAttribute(name, file)
	return v, k.explain(name, file, err)
}

func (k queueKnobs) write(subject, attribute string, v knob.Value) error {
	name, file, err := k.file(subject, attribute)
	if err != nil {
		return err
	}
	return k.explain(name, file, k.sysfs.writeAttribute(name, file, v))
}

func (k queueKnobs) check(subject, attribute string, _ knob.Value) error {
	name, file, err := k.file(subject, attribute)
	if err != nil {
		return err
	}
	return k.explain(name, file, k.sysfs.checkAttribute(name, file))
}

// explain returns a queue that is not there from one that lacks this file: the second has to do
// with the kernel and the driver.
func (k queueKnobs) explain(name, file string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	queue, rest, _ := strings.Cut(strings.TrimPrefix(file, "queues/"), "/")
	if dirErr := k.sysfs.hasDirectory(name, path.Join("queues", queue)); dirErr != nil {
		return dirErr
	}
	return fmt.Errorf("%w: %s has no %s: the kernel is built without it, or the device cannot do it",
		knob.ErrNotSupported, queue, rest)
}
