package record

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/kernel/bpf"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/profile"
)

// listOfFunctions is what the kernel prints anew for each reader: 50 ms for a hundred thousand
// functions, of which samples hit a thousand.
const listOfFunctions = "/proc/kallsyms"

// functions names addresses of the kernel. Where the kernel answers, it is asked once for each
// function that samples hit. Otherwise the list of all of them is read.
type functions struct {
	listed *profile.Symbols // all, or what the kernel loaded since it is asked
	ask    func(address uint64) (bpf.Function, bool, error)
	known  []bpf.Function // the answers, by Start
	err    error          // of asking, the first one
	close  func()
}

// asked returns functions that ask, or an error where the kernel does not answer.
func asked() (*functions, error) {
	names, err := bpf.AskNames()
	if err != nil {
		return nil, err
	}
	return &functions{listed: &profile.Symbols{}, ask: names.Function, close: names.Close}, nil
}

// openFunctions returns functions that ask, or else those of the list.
func openFunctions() (*functions, error) {
	if answers() {
		return asked()
	}
	read := readSymbols()
	return &functions{listed: read.table, close: func() {}}, read.err
}

// answers reports whether the kernel names functions one at a time. A list that hides addresses
// says that this process is to know none, although the kernel would answer.
func answers() bool {
	list, err := os.Open(listOfFunctions)
	if err != nil {
		return false
	}
	defer func() { _ = list.Close() }() // only read
	if !shows(list) {
		return false
	}
	f, err := asked()
	if err != nil {
		return false
	}
	f.close()
	return true
}

// shows reports whether a list of symbols has a function with an address. It reads no further.
func shows(list io.Reader) bool {
	for lines := bufio.NewScanner(list); lines.Scan(); {
		address, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		if len(rest) > 0 && (rest[0]|0x20 == 't' || rest[0]|0x20 == 'w') && len(bytes.Trim(address, "0")) > 0 {
			return true
		}
	}
	return false
}

// resolve returns the function at an address, its module, and how far into it the address is.
func (f *functions) resolve(address uint64) (name, module string, offset uint64, ok bool) {
	if name, module, offset, ok = f.listed.Resolve(address); ok || f.ask == nil {
		return name, module, offset, ok
	}
	i, exact := f.search(address)
	if !exact {
		i--
	}
	if i >= 0 && address-f.known[i].Start < f.known[i].Size {
		return f.known[i].Name, f.known[i].Module, address - f.known[i].Start, true
	}
	one, found, err := f.ask(address)
	if f.err == nil {
		f.err = err
	}
	if !found || address < one.Start {
		return "", "", 0, false
	}
	if i, exact = f.search(one.Start); exact {
		f.known[i] = one // another program of BPF stood there
	} else {
		f.known = slices.Insert(f.known, i, one)
	}
	return one.Name, one.Module, address - one.Start, true
}

// search returns where a function with a start is among the answers, or belongs.
func (f *functions) search(start uint64) (i int, exact bool) {
	return slices.BinarySearchFunc(f.known, start, func(k bpf.Function, x uint64) int { return cmp.Compare(k.Start, x) })
}

// symbolsRead is a list, and the processor time that reading it took.
type symbolsRead struct {
	table *profile.Symbols
	took  time.Duration
	err   error
}

func readSymbols() symbolsRead {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := sys.ThreadTime(sys.ThreadID())
	f, err := os.Open(listOfFunctions)
	if err != nil {
		return symbolsRead{err: fmt.Errorf("read symbols: %w", err)}
	}
	defer func() { _ = f.Close() }() // only read
	table, err := profile.ReadSymbols(f)
	if err != nil {
		return symbolsRead{err: err}
	}
	if table.Len() == 0 {
		return symbolsRead{err: errors.New("read symbols: " + listOfFunctions + " lists no function")}
	}
	now, _ := sys.ThreadTime(sys.ThreadID())
	return symbolsRead{table: table, took: now - before}
}
