package guest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// moduleInfo is what a kernel module says of itself in its section .modinfo: "key=value" texts,
// each ended by a zero byte. A key may come more than once.
type moduleInfo map[string][]string

func parseModuleInfo(section []byte) moduleInfo {
	info := make(moduleInfo)
	for entry := range bytes.SplitSeq(section, []byte{0}) {
		if key, value, ok := strings.Cut(string(entry), "="); ok {
			info[key] = append(info[key], value)
		}
	}
	return info
}

// depends are the modules that have to be loaded before this one. The package has no modules.dep:
// depmod(8) writes it where a kernel is installed.
func (i moduleInfo) depends() (names []string) {
	for _, list := range i["depends"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = moduleName(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// moduleName is the kernel's spelling: what is called virtio-rng.ko in the tree is virtio_rng in
// the kernel and in dependencies.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// readModuleInfo reads the section of a module file.
func readModuleInfo(r io.ReaderAt) (moduleInfo, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("no section .modinfo: not a kernel module")
	}
	b, err := s.Data()
	if err != nil {
		return nil, err
	}
	return parseModuleInfo(b), nil
}

// loadOrder gives the modules wanted and all that they depend on, each once and behind what it
// depends on. depends is asked once for each; a module that is built into the kernel is not in the
// order. It does not end if modules depend on each other in a ring, which modpost refuses to build;
// the ring is an error.
func loadOrder(wanted []string, depends func(name string) (needs []string, builtin bool, err error)) ([]string, error) {
	const visiting, done = 1, 2
	state := make(map[string]int)
	var order []string
	var visit func(name string) error
	visit = func(name string) error {
		switch state[name] {
		case done:
			return nil
		case visiting:
			return fmt.Errorf("module %s depends on itself, by way of %v", name, slices.Sorted(maps.Keys(state)))
		}
		state[name] = visiting
		needs, builtin, err := depends(name)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, n := range needs {
			if err := visit(n); err != nil {
				return err
			}
		}
		state[name] = done
		if !builtin {
			order = append(order, name)
		}
		return nil
	}
	for _, name := range wanted {
		if err := visit(moduleName(name)); err != nil {
			return nil, err
		}
	}
	return order, nil
}
