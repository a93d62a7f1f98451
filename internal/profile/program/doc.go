// Package program names the functions of running programs by their addresses.
//
// # Model
//
// A [Process] has the executable parts of a process's memory, from /proc/PID/maps.
// [Process.Resolve] finds the part that an address is in, and the function in the symbols of its
// file: the tables of ELF (.symtab, .dynsym), or the table of Go's runtime (.gopclntab), which
// remains in a binary without symbols. [Files] keeps the tables, one for each file.
//
// # Units
//
// Addresses are those of the process.
//
// # Sources
//
// elf(5); proc_pid_maps(5); debug/gosym for the table of Go.
//
// # Limits
//
// A file is read when an address in it is first asked for, and only up to [MaxFiles] files and
// MaxFileBytes of each. Code that a program generates has no names. A library without symbols has
// those that it exports.
package program
