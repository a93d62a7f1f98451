// Package windows asks PowerShell for objects of Windows and reads its answers.
//
// # Model
//
// [Script] wraps a pipeline so that it prints one JSON object in UTF-8: rows, or the category and
// code of an error. [ParseAnswer] reads it; [Row] gives the fields. Neither words for people nor
// tables are ever read: they follow the language of the system. Categories, codes and names of
// enumerations do not.
//
// # Units
//
// Packets and bytes since the adapter was enabled; bits per second.
//
// # Sources
//
// learn.microsoft.com: NetAdapter, NetTCPIP, ConvertTo-Json, ErrorCategory, MSFT_NetTCPSetting.
//
// # Limits
//
// Windows PowerShell 5.1 and later. It writes a single value of a list with or without brackets,
// and numbers as numbers or as texts: all of them are read.
package windows
