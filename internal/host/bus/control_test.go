package bus

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"testing"
)

// TestControl: the sizes of a card as root reads them, of one whose codes are reserved, and what is
// not readable.
func TestControl(t *testing.T) {
	config := func(capabilities, control uint16) []byte {
		b := make([]byte, 256)
		binary.LittleEndian.PutUint32(b, 0x10fb8086)
		binary.LittleEndian.PutUint16(b[configStatus:], statusCapabilities)
		b[configCapabilities] = 0xa0
		b[0xa0] = capabilityPCIe
		binary.LittleEndian.PutUint16(b[0xa4:], capabilities)
		binary.LittleEndian.PutUint16(b[0xa8:], control)
		return b
	}
	for _, c := range []struct {
		name   string
		config []byte
		err    error
		want   Control
		ok     bool
	}{
		{"256 of 512 bytes, reads of 4096", config(2, 5<<12|1<<5), nil,
			Control{PayloadBytes: 256, PayloadSupportedBytes: 512, ReadRequestBytes: 4096}, true},
		{"the smallest", config(0, 0), nil, Control{128, 128, 128}, true},
		{"reserved codes", config(7, 6<<12|7<<5), nil, Control{}, true},
		{"64 bytes, as any user may read", config(2, 0)[:64], nil, Control{}, false},
		{"not there", nil, fs.ErrNotExist, Control{}, false},
		{"asleep", nil, errors.New("asleep"), Control{}, false},
	} {
		m := Machine{Tree: Tree{Read: func(string) ([]byte, error) { return c.config, c.err }}}
		if got, ok := m.Control("sys/devices/x"); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v %v, want %+v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}
