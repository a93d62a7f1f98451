package ethtool

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// wake reads struct ethtool_wolinfo: u32 command, u32 supported, u32 on, six bytes of a password
// that this package leaves alone. The ioctl has it on every kernel.
func (k kernel) wake(name string) (Wake, error) {
	buf := make([]byte, 20)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GWOL)
	if err := k.Ioctl(name, buf); err != nil {
		return Wake{}, err
	}
	return Wake{Supported: u32(buf[4:]), On: u32(buf[8:])}, nil
}

func (k kernel) setWake(name string, on uint32) error {
	if on&WakeMagicSecure != 0 {
		return fmt.Errorf("wake-on-lan with a password: %w", nl.ErrNotSupported)
	}
	buf := make([]byte, 20)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_SWOL)
	binary.NativeEndian.PutUint32(buf[8:], on)
	return k.Ioctl(name, buf)
}

// messageLevel reads struct ethtool_value: u32 command, u32 value.
func (k kernel) messageLevel(name string) (uint32, error) {
	buf := make([]byte, 8)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GMSGLVL)
	if err := k.Ioctl(name, buf); err != nil {
		return 0, err
	}
	return u32(buf[4:]), nil
}

func (k kernel) setMessageLevel(name string, level uint32) error {
	buf := make([]byte, 8)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_SMSGLVL)
	binary.NativeEndian.PutUint32(buf[4:], level)
	return k.Ioctl(name, buf)
}
