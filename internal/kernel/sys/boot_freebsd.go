package sys

import (
	"encoding/hex"
	"fmt"

	"github.com/linerate/linerate/internal/kernel/mib"
)

// BootID returns the kernel's identifier of this boot, which changes at every boot and at no other
// time (kern.boot_id, since FreeBSD 13). The time of the boot would not do: it moves when the clock
// is set.
func BootID() (string, error) {
	raw, err := mib.BootID()
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return hex.EncodeToString(raw), nil
}
