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

// moduleInfo is the section .modinfo of a kernel module: "key=value" texts, each ended by a zero
// byte. A key may occur more than once.
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

// depends returns the modules that must be loaded before this one. The Debian package has no
// modules.dep: depmod(8) writes it when a kernel is installed.
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

// moduleName returns the kernel's spelling: virtio-rng.ko in the tree is virtio_rng in the kernel
// and in dependencies.
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

// loadOrder returns the requested modules and their dependencies, each once and after the modules
// that it depends on. It calls depends once for each module and leaves out modules that are built
// into the kernel. A ring of dependencies, which modpost refuses to build, is an error.
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
