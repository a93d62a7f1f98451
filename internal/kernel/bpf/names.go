package bpf

import (
	"strconv"
	"strings"
)

// Function is a function of the kernel.
type Function struct {
	Name   string
	Module string // empty: the kernel proper; "bpf": a BPF program or trampoline
	Start  uint64
	Size   uint64 // octets; at least 1
}

// parseFunction reads the text of %pS: NAME+0xOFFSET/0xSIZE, behind which a module may be named in
// brackets. An address that belongs to no function is printed as a number.
func parseFunction(address uint64, text string) (Function, bool) {
	text, module, _ := strings.Cut(text, " [")
	module, _, _ = strings.Cut(module, "]")
	i := strings.LastIndex(text, "+0x")
	if i <= 0 {
		return Function{}, false
	}
	from, size, ok := strings.Cut(text[i+3:], "/0x")
	offset, err := strconv.ParseUint(from, 16, 64)
	length, err2 := strconv.ParseUint(size, 16, 64)
	if !ok || err != nil || err2 != nil || offset > address {
		return Function{}, false
	}
	f := Function{Name: strings.TrimPrefix(text[:i], "__pfx_"), Module: module, Start: address - offset,
		Size: max(length, offset+1)}
	if module == "" && ofBPF(f.Name) {
		f.Module = "bpf"
	}
	return f, true
}

// ofBPF reports names that the kernel makes for BPF programs, trampolines and dispatchers
// (bpf_get_prog_name and bpf_trampoline.c); some of its own functions begin with the same letters.
func ofBPF(name string) bool {
	if rest, ok := strings.CutPrefix(name, "bpf_prog_"); ok {
		const tag = 16 // hexadecimal digits
		if len(rest) < tag || len(rest) > tag && rest[tag] != '_' {
			return false
		}
		_, err := strconv.ParseUint(rest[:tag], 16, 64)
		return err == nil
	}
	rest, ok := strings.CutPrefix(name, "bpf_trampoline_")
	if !ok {
		return false
	}
	_, err := strconv.ParseUint(rest, 10, 64)
	return err == nil
}
