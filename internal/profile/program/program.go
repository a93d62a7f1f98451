package program

import (
	"bufio"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Bounds of the files that are read, and of the parts of one process.
const (
	MaxFiles     = 64
	MaxFileBytes = 1 << 30
	maxParts     = 1 << 16
)

// Files are the symbols of files, each read once. It is for one goroutine at a time.
type Files struct{ tables map[string]*table }

// part is an executable part of a process's memory.
type part struct {
	start, end, offset uint64
	path               string
	key                string // device and inode
}

// Process is one running program.
type Process struct {
	pid   int
	parts []part // by address
	files *Files
}

// function is a function of a file, by its address in the file's own space.
type function struct {
	address, size uint64
	name          string
}

// table has the functions of a file, and how its parts are loaded.
type table struct {
	functions []function
	loads     []elf.ProgHeader
}

// Open reads the parts of a process. The error is fs.ErrNotExist when it has ended, and
// fs.ErrPermission when it belongs to another user.
func (f *Files) Open(pid int) (*Process, error) {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return nil, fmt.Errorf("read parts of process: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	parts, err := parseMaps(file)
	if err != nil {
		return nil, fmt.Errorf("read parts of process %d: %w", pid, err)
	}
	return &Process{pid: pid, parts: parts, files: f}, nil
}

// errMap reports a line that is none of maps.
var errMap = errors.New("not a line of maps")

// parseMaps reads the executable parts with a file.
func parseMaps(r io.Reader) ([]part, error) {
	var all []part
	for s := bufio.NewScanner(r); s.Scan() && len(all) < maxParts; {
		f := strings.Fields(s.Text())
		if len(f) < 5 {
			return nil, fmt.Errorf("%w: %.80q", errMap, s.Text())
		}
		if len(f) < 6 || !strings.Contains(f[1], "x") || !strings.HasPrefix(f[5], "/") {
			continue // no code, or code without a file
		}
		low, high, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(low, 16, 64)
		end, err2 := strconv.ParseUint(high, 16, 64)
		offset, err3 := strconv.ParseUint(f[2], 16, 64)
		if err := errors.Join(err1, err2, err3); err != nil || end <= start {
			return nil, fmt.Errorf("%w: %.80q", errMap, s.Text())
		}
		all = append(all, part{start, end, offset, f[5], f[3] + " " + f[4]})
	}
	sorting.Func(all, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	return all, nil
}

// Resolve returns the function at an address and the name of its file; where the file has no symbol
// there, name is "file+0x…", the offset in the file. It returns false for an address in no file.
func (p *Process) Resolve(address uint64) (name, file string, ok bool) {
	i, found := slices.BinarySearchFunc(p.parts, address, func(x part, a uint64) int { return cmp.Compare(x.start, a) })
	if !found {
		i--
	}
	if i < 0 || address >= p.parts[i].end {
		return "", "", false
	}
	x := p.parts[i]
	file = filepath.Base(x.path)
	at := address - x.start + x.offset
	if name, ok := p.files.table(p.pid, x).at(at); ok {
		return name, file, true
	}
	return fmt.Sprintf("%s+%#x", file, at), file, true
}

// table returns the table of a file, an empty one where it cannot be read.
func (f *Files) table(pid int, x part) *table {
	if t := f.tables[x.key]; t != nil {
		return t
	}
	t := &table{}
	if f.tables == nil {
		f.tables = make(map[string]*table)
	}
	if len(f.tables) >= MaxFiles {
		return t
	}
	// The file as the process sees it: a container has another root, and an upgrade may have
	// replaced the file.
	for _, name := range []string{fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, x.start, x.end),
		fmt.Sprintf("/proc/%d/root%s", pid, x.path)} {
		if got, err := read(name); err == nil {
			t = got
			break
		}
	}
	f.tables[x.key] = t
	return t
}

// read reads the functions of an ELF file.
func read(name string) (*table, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("read symbols of %s: %d bytes are too many", name, info.Size())
	}
	file, err := elf.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	t := &table{}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			t.loads = append(t.loads, p.ProgHeader)
		}
	}
	if !t.addGo(file) {
		for _, list := range []func() ([]elf.Symbol, error){file.Symbols, file.DynamicSymbols} {
			symbols, _ := list() // a file may lack either
			for _, s := range symbols {
				if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 && s.Section != elf.SHN_UNDEF {
					t.functions = append(t.functions, function{s.Value, s.Size, s.Name})
				}
			}
		}
	}
	sorting.StableFunc(t.functions, func(a, b function) int { return cmp.Compare(a.address, b.address) })
	t.functions = slices.CompactFunc(t.functions, func(a, b function) bool { return a.address == b.address })
	return t, nil
}

// addGo adds the functions of a Go program, and reports whether it is one.
func (t *table) addGo(file *elf.File) bool {
	section, text := file.Section(".gopclntab"), file.Section(".text")
	if section == nil || text == nil {
		return false
	}
	data, err := section.Data()
	if err != nil {
		return false
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil || len(table.Funcs) == 0 {
		return false
	}
	for _, f := range table.Funcs {
		t.functions = append(t.functions, function{f.Entry, f.End - f.Entry, f.Name})
	}
	return true
}

// at returns the function at an offset of the file.
func (t *table) at(offset uint64) (string, bool) {
	for _, l := range t.loads {
		if offset < l.Off || offset-l.Off >= l.Filesz {
			continue
		}
		address := offset - l.Off + l.Vaddr
		i, found := slices.BinarySearchFunc(t.functions, address,
			func(f function, a uint64) int { return cmp.Compare(f.address, a) })
		if !found {
			i--
		}
		// A symbol without a size ends at the next one.
		if i >= 0 && (t.functions[i].size == 0 || address-t.functions[i].address < t.functions[i].size) {
			return t.functions[i].name, true
		}
	}
	return "", false
}
