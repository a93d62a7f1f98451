// Package registry reads and writes values of the Windows registry.
//
// # Model
//
// A [Store] finds a value by its key and name. [Local] is that of the running system; [Hive] is
// the text of a registry file (.reg) from another machine. A value that does not exist is an
// answer of its own, fs.ErrNotExist, and [Store.Delete] brings that state back: a value that was
// absent must be absent again after an undo.
//
// # Units
//
// Numbers are those of REG_DWORD and REG_QWORD.
//
// # Sources
//
// learn.microsoft.com: RegOpenKeyEx, structure of the registry; golang.org/x/sys/windows/registry.
//
// # Limits
//
// Keys below HKEY_LOCAL_MACHINE, written HKLM\…; no key is ever created. Text is that of REG_SZ and
// REG_EXPAND_SZ; other types are reported and not read.
package registry
