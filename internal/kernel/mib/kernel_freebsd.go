package mib

import (
	"errors"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Kernel is the tree of the running kernel.
type Kernel struct{}

// The nodes below sysctl (0) that answer about others (sys/sysctl.h).
const (
	nodeName = 1
	nodeNext = 2
	nodeOID  = 3
	nodeKind = 4
)

const (
	mostLevels = 24      // CTL_MAXNAME
	mostBytes  = 1 << 20 // longer than any value that is a number or a line
	mostNames  = 100_000
)

// call is sysctl(3).
func call(oid []int32, old, new []byte) (int, error) {
	size := uintptr(len(old))
	var oldAt, newAt unsafe.Pointer
	if len(old) > 0 {
		oldAt = unsafe.Pointer(&old[0])
	}
	if len(new) > 0 {
		newAt = unsafe.Pointer(&new[0])
	}
	_, _, errno := unix.Syscall6(unix.SYS___SYSCTL, uintptr(unsafe.Pointer(&oid[0])), uintptr(len(oid)), uintptr(oldAt),
		uintptr(unsafe.Pointer(&size)), uintptr(newAt), uintptr(len(new)))
	if errno != 0 {
		return 0, errno
	}
	return int(size), nil
}

// numbers reads the numbers of an object identifier.
func numbers(raw []byte) []int32 {
	out := make([]int32, len(raw)/4)
	for i := range out {
		out[i] = *(*int32)(unsafe.Pointer(&raw[4*i]))
	}
	return out
}

func oidOf(name string) ([]int32, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, unix.ENOENT
	}
	answer := make([]byte, 4*mostLevels)
	n, err := call([]int32{0, nodeOID}, answer, []byte(name))
	if err != nil {
		return nil, err
	}
	if n < 4 {
		return nil, unix.ENOENT
	}
	return numbers(answer[:n]), nil
}

func kindOf(oid []int32) (uint32, error) {
	answer := make([]byte, 256)
	n, err := call(append([]int32{0, nodeKind}, oid...), answer, nil)
	if err != nil {
		return 0, err
	}
	if n < 4 {
		return 0, ErrOpaque
	}
	return *(*uint32)(unsafe.Pointer(&answer[0])), nil
}

// Get implements Tree.
func (Kernel) Get(name string) (Node, error) {
	oid, err := oidOf(name)
	if err != nil {
		return Node{}, err
	}
	kind, err := kindOf(oid)
	if err != nil {
		return Node{}, err
	}
	if size, _ := width(kind); size == 0 && kind&typeMask != typeString {
		return Node{}, ErrOpaque
	}
	var raw []byte
	for size := 128; ; size *= 8 {
		raw = make([]byte, size)
		n, err := call(oid, raw, nil)
		if errors.Is(err, syscall.ENOMEM) && size < mostBytes {
			continue
		}
		if err != nil {
			return Node{}, err
		}
		raw = raw[:n]
		break
	}
	value, err := decode(kind, raw)
	if err != nil {
		return Node{}, err
	}
	return Node{Value: value, Writable: kind&flagWritable != 0, Tunable: kind&flagTunable != 0}, nil
}

// Set implements Tree.
func (Kernel) Set(name, value string) error {
	oid, err := oidOf(name)
	if err != nil {
		return err
	}
	kind, err := kindOf(oid)
	if err != nil {
		return err
	}
	raw, err := encode(kind, value)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		raw = []byte{0} // an empty text
	}
	_, err = call(oid, nil, raw)
	return err
}

// Names implements Tree.
func (Kernel) Names(below string) ([]string, error) {
	root, err := oidOf(below)
	if err != nil {
		return nil, err
	}
	var names []string
	for oid := root; len(names) < mostNames; {
		answer := make([]byte, 4*mostLevels)
		n, err := call(append([]int32{0, nodeNext}, oid...), answer, nil)
		if errors.Is(err, syscall.ENOENT) {
			break
		}
		if err != nil {
			return nil, err
		}
		oid = numbers(answer[:n])
		text := make([]byte, 1024)
		if n, err = call(append([]int32{0, nodeName}, oid...), text, nil); err != nil {
			return nil, err
		}
		name := strings.TrimRight(string(text[:n]), "\x00")
		if name != below && !strings.HasPrefix(name, below+".") {
			break
		}
		names = append(names, name)
	}
	return names, nil
}

// BootID returns the random identifier of this boot, 32 hexadecimal digits (since FreeBSD 13).
func BootID() ([]byte, error) {
	oid, err := oidOf("kern.boot_id")
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 64)
	n, err := call(oid, raw, nil)
	if err != nil {
		return nil, err
	}
	return raw[:n], nil
}
