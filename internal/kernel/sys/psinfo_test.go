package sys

import (
	"encoding/binary"
	"testing"
)

func TestBootFromPsinfo(t *testing.T) {
	b := make([]byte, 416)
	binary.LittleEndian.PutUint32(b[8:], 1)
	binary.LittleEndian.PutUint64(b[88:], 1700000000)
	binary.LittleEndian.PutUint64(b[96:], 255)
	if id, err := bootFromPsinfo(b); id != "6553f100-ff" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	for _, bad := range [][]byte{nil, b[:100], make([]byte, 416)} {
		if id, err := bootFromPsinfo(bad); err == nil {
			t.Errorf("%q", id)
		}
	}
}
