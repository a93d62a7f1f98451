package bpf

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Names asks the kernel for names of its functions, one at a time. It is for one goroutine at a
// time. Close it.
type Names struct {
	fds     []int
	program int
	memory  []byte // shared with the program: the address, then the kernel's text
}

// textAt is where the kernel's text begins, behind the address.
const textAt = 8

// AskNames makes a program that prints an address as the kernel does in its own messages, and that
// runs when it is asked. The error is ErrNotSupported before Linux 5.13, and fs.ErrPermission
// without the capabilities (cap_bpf and cap_perfmon).
func AskNames() (*Names, error) {
	n := &Names{}
	if err := n.open(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Names) open() error {
	// The helper takes its format only from memory that no program can change any more.
	format := []byte("%pS\x00")
	formats, err := n.table(uint32(len(format)), readOnlyByProgram)
	if err != nil {
		return err
	}
	set := element{fd: uint32(formats), key: address(make([]byte, 4)), value: address(format)}
	if _, err := call(mapUpdate, unsafe.Pointer(&set), unsafe.Sizeof(set)); err != nil {
		return refused("write the format of names", err)
	}
	runtime.KeepAlive(format)
	freeze := struct{ fd uint32 }{uint32(formats)}
	if _, err := call(mapFreeze, unsafe.Pointer(&freeze), unsafe.Sizeof(freeze)); err != nil {
		return refused("freeze the format of names", err)
	}
	shared, err := n.table(sharedBytes, mappable)
	if err != nil {
		return err
	}
	if n.memory, err = unix.Mmap(shared, 0, sharedBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return refused("map the memory of names", err)
	}
	if n.program, err = load(printName(shared, formats)); err != nil {
		return refused("load program for names", err)
	}
	n.fds = append(n.fds, n.program)
	return nil
}

// table makes an array of one value.
func (n *Names) table(size, flags uint32) (int, error) {
	fd, err := createTable(kindArray, 4, size, 1, flags)
	if err != nil {
		return -1, refused("create table of names", err)
	}
	n.fds = append(n.fds, fd)
	return fd, nil
}

// Function returns the function at an address; false where the kernel knows none.
func (n *Names) Function(at uint64) (Function, bool, error) {
	binary.NativeEndian.PutUint64(n.memory, at)
	run := struct {
		fd, result uint32
		_          [64]byte // no context, no packet
	}{fd: uint32(n.program)}
	if _, err := call(programRun, unsafe.Pointer(&run), unsafe.Sizeof(run)); err != nil {
		return Function{}, false, fmt.Errorf("ask for the name of a function: %w", err)
	}
	// The result counts the octet behind the text, and is negative where the helper refuses.
	length := int32(run.result) - 1
	if length < 0 {
		return Function{}, false, fmt.Errorf("ask for the name of a function: %w", unix.Errno(-int32(run.result)))
	}
	length = min(length, sharedBytes-textAt-1)
	f, ok := parseFunction(at, string(n.memory[textAt:textAt+length]))
	return f, ok, nil
}

// Close ends asking.
func (n *Names) Close() {
	if n.memory != nil {
		_ = unix.Munmap(n.memory) // not used any more
		n.memory = nil
	}
	for _, fd := range n.fds {
		_ = unix.Close(fd) // nothing is written through it
	}
	n.fds = nil
}
