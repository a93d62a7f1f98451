package profile

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// ErrHidden reports a list of symbols whose addresses are all zero: the kernel hides them from this
// process. It is a kind of fs.ErrPermission.
var ErrHidden = fmt.Errorf("the kernel hides the addresses of its functions: %w", fs.ErrPermission)

// Symbols are the functions of a kernel by address.
type Symbols struct {
	all   []symbol // by address
	later []symbol // added after the list was read, newest last
}

type symbol struct {
	address uint64
	length  uint32 // 0: up to the next one
	name    string
	module  string
	local   bool
}

// longestFunction bounds the distance of an address from the start of its function. Beyond it the
// address is in none: memory that was never listed.
const longestFunction = 1 << 20

// ReadSymbols reads /proc/kallsyms: functions of the kernel, its modules, BPF programs and
// trampolines. Padding in front of functions (__pfx_) and data are left out. It returns ErrHidden
// when every address is zero.
func ReadSymbols(r io.Reader) (*Symbols, error) {
	s := &Symbols{all: make([]symbol, 0, 1<<16)}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), 1<<20)
	hidden, lines := true, 0
	for scanner.Scan() {
		line := scanner.Bytes()
		lines++
		hex, rest, ok := bytes.Cut(line, []byte{' '})
		if !ok || len(rest) < 3 || rest[1] != ' ' {
			return nil, fmt.Errorf("read symbols: line %d: %.60q is none", lines, line)
		}
		kind, name := rest[0], rest[2:]
		if strings.IndexByte("tTwW", kind) < 0 || bytes.HasPrefix(name, []byte("__pfx_")) {
			continue
		}
		address, err := parseHex(hex)
		if err != nil {
			return nil, fmt.Errorf("read symbols: line %d: %w", lines, err)
		}
		if address == 0 {
			continue
		}
		hidden = false
		one := symbol{address: address, local: kind == 't' || kind == 'w'}
		if i := bytes.IndexAny(name, "\t "); i >= 0 {
			one.module = strings.Trim(string(bytes.TrimSpace(name[i:])), "[]")
			name = name[:i]
		}
		one.name = string(name)
		s.all = append(s.all, one)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read symbols: %w", err)
	}
	if lines > 0 && hidden {
		return nil, ErrHidden
	}
	// Of several names of one address the global one is the function's own; the shortest has no
	// suffix of the compiler.
	sorting.StableFunc(s.all, func(a, b symbol) int {
		if c := cmp.Compare(a.address, b.address); c != 0 || a.local == b.local {
			return cmp.Or(c, cmp.Compare(len(a.name), len(b.name)))
		}
		if a.local {
			return 1
		}
		return -1
	})
	s.all = slices.CompactFunc(s.all, func(a, b symbol) bool { return a.address == b.address })
	return s, nil
}

// parseHex reads an address. strconv would ask for a string, of each of a hundred thousand lines.
func parseHex(b []byte) (uint64, error) {
	if len(b) == 0 || len(b) > 16 {
		return 0, fmt.Errorf("address %.20q", b)
	}
	v := uint64(0)
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, fmt.Errorf("address %.20q", b)
		}
	}
	return v, nil
}

// Len returns the number of functions.
func (s *Symbols) Len() int { return len(s.all) }

// Add adds a function that the kernel loaded after the list was read.
func (s *Symbols) Add(address uint64, length uint32, name string) {
	module := ""
	if strings.HasPrefix(name, "bpf_") {
		module = "bpf"
	}
	s.later = append(s.later, symbol{address: address, length: length, name: name, module: module})
}

// Resolve returns the function at an address, the module that it belongs to (empty: the kernel
// proper), and how far into the function the address is; false where no function is known.
func (s *Symbols) Resolve(address uint64) (name, module string, offset uint64, ok bool) {
	for _, one := range slices.Backward(s.later) {
		if address >= one.address && address-one.address < uint64(max(one.length, 1)) {
			return one.name, one.module, address - one.address, true
		}
	}
	i, exact := slices.BinarySearchFunc(s.all, address, func(a symbol, x uint64) int { return cmp.Compare(a.address, x) })
	if !exact {
		i--
	}
	if i < 0 || address-s.all[i].address > longestFunction {
		return "", "", 0, false
	}
	return s.all[i].name, s.all[i].module, address - s.all[i].address, true
}
