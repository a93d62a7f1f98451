package sys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// bootKey is a volatile key of the registry: Windows keeps it in memory and forgets it when it
// stops.
const bootKey = `SOFTWARE\linerate-boot`

// BootID returns an identifier of this boot: a random text in a volatile key of the registry, which
// the first call after a start writes. That call needs an administrator. The time of the boot would
// not do: it moves when the clock is set.
func BootID() (string, error) {
	if id, err := readBootID(); err == nil {
		return id, nil
	}
	if err := writeBootID(rand.Text()); err != nil {
		return "", fmt.Errorf("write boot id: %w", err)
	}
	// Of two processes that wrote at once, the later one counts for both.
	id, err := readBootID()
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return id, nil
}

func readBootID() (string, error) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, bootKey, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return "", err
	}
	id, _, err := k.GetStringValue("id")
	if closeErr := k.Close(); err == nil {
		err = closeErr
	}
	if err == nil && id == "" {
		err = errors.New("the boot id is empty")
	}
	return id, err
}

// writeBootID makes the key: package registry can make only keys that stay.
func writeBootID(id string) error {
	const volatile = 1 // REG_OPTION_VOLATILE
	create := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegCreateKeyExW")
	name, err := windows.UTF16PtrFromString(bootKey)
	if err != nil {
		return err
	}
	var handle syscall.Handle
	status, _, _ := create.Call(uintptr(registry.LOCAL_MACHINE), uintptr(unsafe.Pointer(name)), 0, 0, volatile,
		uintptr(registry.SET_VALUE|registry.WOW64_64KEY), 0, uintptr(unsafe.Pointer(&handle)), 0)
	if status != 0 {
		return syscall.Errno(status)
	}
	k := registry.Key(handle)
	return errors.Join(k.SetStringValue("id", id), k.Close())
}
