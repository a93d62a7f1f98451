package profile

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// ErrHidden reports a list of symbols whose addresses are all zero: the kernel hides them from this
// process. It is a kind of fs.ErrPermission.
var ErrHidden = fmt.Errorf("the kernel hides the addresses of its functions: %w", fs.ErrPermission)

// Symbols are the functions of a kernel by address. The zero value knows none.
type Symbols struct {
	all     []listed // by address
	text    []byte   // their names, one behind the other
	modules []string // the first is empty: the kernel proper
	later   []symbol // added after the list was read, newest last
}

// listed is a function of the list. Its name is at text[at : at+length]: a list has a hundred
// thousand lines, of which samples hit some hundreds, so that only those become strings.
type listed struct {
	address uint64
	at      uint32
	length  uint16
	module  uint16 // index of modules
	local   bool
}

// symbol is a function that was added.
type symbol struct {
	address uint64
	length  uint32
	name    string
	module  string
}

// longestFunction bounds the distance of an address from the start of its function. Beyond it the
// address is in none: memory that was never listed.
const longestFunction = 1 << 20

// ReadSymbols reads /proc/kallsyms: functions of the kernel, its modules, BPF programs and
// trampolines. Padding in front of functions (__pfx_) and data are left out. It returns ErrHidden
// when every address is zero.
func ReadSymbols(r io.Reader) (*Symbols, error) {
	s := &Symbols{all: make([]listed, 0, 1<<16), text: make([]byte, 0, 1<<20), modules: []string{""}}
	l := list{Symbols: s, numbers: map[string]uint16{"": 0}}
	part := make([]byte, longestLine)
	held := 0 // octets of a line whose end is not read yet
	for {
		n, err := r.Read(part[held:])
		held += n
		rest := part[:held]
		for {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				break
			}
			if err := l.add(rest[:end]); err != nil {
				return nil, err
			}
			rest = rest[end+1:]
		}
		held = copy(part, rest)
		switch {
		case err == io.EOF && held == 0:
			return s, l.finish()
		case err == io.EOF:
			if err := l.add(part[:held]); err != nil {
				return nil, err
			}
			return s, l.finish()
		case err != nil:
			return nil, fmt.Errorf("read symbols: %w", err)
		case held == len(part):
			return nil, fmt.Errorf("read symbols: line %d has more than %d octets", l.lines+1, longestLine)
		}
	}
}

// longestLine bounds a line of the list, in octets. The kernel returns a page at a time.
const longestLine = 64 << 10

// list is one that is read.
type list struct {
	*Symbols
	numbers map[string]uint16 // of modules
	lines   int
	shown   bool // an address is not zero
	sorted  int  // functions at the start that are by address
}

// padding is in front of functions since Linux 6.3; half of the lines have it.
var padding = []byte("__pfx_")

// add adds a line: an address of hexadecimal digits, the kind, and the name, behind which a module
// may be named in brackets.
func (l *list) add(line []byte) error {
	l.lines++
	space := bytes.IndexByte(line, ' ')
	if space < 0 || len(line) < space+4 || line[space+2] != ' ' {
		return fmt.Errorf("read symbols: line %d: %.60q is none", l.lines, line)
	}
	kind, name := line[space+1], line[space+3:]
	if kind|0x20 != 't' && kind|0x20 != 'w' || name[0] == '_' && bytes.HasPrefix(name, padding) {
		return nil
	}
	address, err := parseHex(line[:space])
	if err != nil {
		return fmt.Errorf("read symbols: line %d: %w", l.lines, err)
	}
	if address == 0 {
		return nil
	}
	l.shown = true
	one := listed{address: address, local: kind&0x20 != 0}
	if i := 0; name[len(name)-1] == ']' {
		if i = bytes.IndexAny(name, "\t "); i < 0 {
			i = len(name)
		}
		module := bytes.Trim(name[i:], "\t []")
		number, known := l.numbers[string(module)]
		if !known {
			if len(l.modules) > math.MaxUint16 {
				return fmt.Errorf("read symbols: line %d: more than %d modules", l.lines, math.MaxUint16)
			}
			number = uint16(len(l.modules))
			l.modules = append(l.modules, string(module))
			l.numbers[string(module)] = number
		}
		one.module, name = number, name[:i]
	}
	if len(name) > math.MaxUint16 || len(l.text) > math.MaxUint32-len(name) {
		return fmt.Errorf("read symbols: line %d: a name of %d octets behind %d", l.lines, len(name), len(l.text))
	}
	one.at, one.length = uint32(len(l.text)), uint16(len(name))
	if last := len(l.all) - 1; l.sorted == len(l.all) {
		switch {
		case last < 0 || l.all[last].address < address:
			l.sorted++
		case l.all[last].address == address:
			if compare(one, l.all[last]) < 0 {
				l.text = append(l.text, name...)
				l.all[last] = one
			}
			return nil
		}
	}
	l.text = append(l.text, name...)
	l.all = append(l.all, one)
	return nil
}

// compare orders functions. Of several names of one address the global one is the function's own;
// the shortest has no suffix of the compiler.
func compare(a, b listed) int {
	if c := cmp.Compare(a.address, b.address); c != 0 || a.local == b.local {
		return cmp.Or(c, cmp.Compare(a.length, b.length))
	}
	if a.local {
		return 1
	}
	return -1
}

// finish sorts what the kernel did not: it lists its own functions by address, and those of modules
// and BPF programs behind them.
func (l *list) finish() error {
	if l.lines > 0 && !l.shown {
		return ErrHidden
	}
	if l.sorted < len(l.all) {
		from := l.sorted
		sorting.StableFunc(l.all[from:], compare)
		if from > 0 && compare(l.all[from-1], l.all[from]) > 0 {
			sorting.StableFunc(l.all, compare)
		}
		l.all = slices.CompactFunc(l.all, func(a, b listed) bool { return a.address == b.address })
	}
	return nil
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
	i, exact := slices.BinarySearchFunc(s.all, address, func(a listed, x uint64) int { return cmp.Compare(a.address, x) })
	if !exact {
		i--
	}
	if i < 0 || address-s.all[i].address > longestFunction {
		return "", "", 0, false
	}
	one := s.all[i]
	name = string(s.text[one.at : one.at+uint32(one.length)])
	return name, s.modules[one.module], address - one.address, true
}
