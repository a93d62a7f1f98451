package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// bootFromPsinfo reads pr_pid and pr_start of a 64-bit system.
func bootFromPsinfo(b []byte) (string, error) {
	const pid, start, end = 8, 88, 104
	if len(b) < end || binary.LittleEndian.Uint32(b[pid:]) != 1 || binary.LittleEndian.Uint64(b[start:]) == 0 {
		return "", errors.New("read boot id: /proc/1/psinfo has another form")
	}
	return fmt.Sprintf("%x-%x", binary.LittleEndian.Uint64(b[start:]), binary.LittleEndian.Uint64(b[start+8:])), nil
}
