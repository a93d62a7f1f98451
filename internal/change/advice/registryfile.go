package advice

import (
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// registryKey and registryValue are the two kinds of lines of a file that regedit writes. Source:
// "How to add, modify, or delete registry subkeys and values by using a .reg file",
// learn.microsoft.com.
var (
	registryKey = pattern.New(`(?i)^\[-?(hk[a-z_]+(?:\\[^\]]*)?)\]\s*(?:;.*)?$`)
	// keyInCode is a key within the backquotes of a page, and perhaps a value behind it.
	keyInCode     = pattern.New("`\\[(HK[A-Z_]+\\\\[^\\]]+)\\]([^`]*)`*$")
	registryValue = pattern.New(`^(?:"((?:[^"\\]|\\.)*)"|@)\s*=\s*(.*)$`)
)

// registry reads a line of a .reg file. Values count only below a key, so that no other line counts
// as one.
//
// The head ("Windows Registry Editor Version 5.00", "REGEDIT4") is not required, because fragments
// circulate without it. The bracket of an ini file ([Unit], [main]) is not a key, because keys
// begin with the name of a hive.
func (r *reader) registry(text string) bool {
	if m := registryKey.FindStringSubmatch(text); m != nil {
		r.key = strings.TrimRight(shortHive(m[1]), `\`)
		return true
	}
	if m := keyInCode.FindStringSubmatch(text); m != nil {
		r.key = shortHive(m[1])
		if text = strings.TrimSpace(m[2]); text == "" {
			return true
		}
	}
	if r.key == "" {
		return false
	}
	if text[0] == ';' {
		return true
	}
	m := registryValue.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	if m[1] != "" && strings.TrimSpace(m[2]) != "-" { // a deletion sets nothing
		r.add(Windows, "registry:"+r.key+`\`+m[1], registryNumber(m[2]))
	}
	return true
}

// registryNumber returns a dword in decimal digits and leaves other types unchanged.
//
// A dword is 32 bits, in hexadecimal digits without a prefix; leading zeros are usual and may be
// missing. Others (qword, hex lists) are of no setting that is known here.
func registryNumber(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), "`")
	if !strings.HasPrefix(s, `"`) {
		s, _, _ = strings.Cut(s, ";") // a comment, which regedit takes at the beginning of a line only
		s = strings.TrimSpace(s)
	}
	digits, ok := strings.CutPrefix(strings.ToLower(s), "dword:")
	if bytes, hex := strings.CutPrefix(strings.ToLower(s), "hex(4):"); hex { // a dword, the lowest byte first
		all := strings.Split(bytes, ",")
		slices.Reverse(all)
		digits, ok = strings.Join(all, ""), true
	}
	if !ok {
		return strings.Trim(s, `"`)
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return s
	}
	return strconv.FormatUint(n, 10)
}

// registryWord returns a number of a call in decimal. Eight digits without a prefix are hexadecimal
// if one of them is a letter.
func registryWord(s string) string {
	if len(s) == 8 && strings.ContainsAny(strings.ToLower(s), "abcdef") && !strings.HasPrefix(s, "0x") {
		s = "0x" + s
	}
	return number(s)
}

// shortHive abbreviates the names of the hives as reg.exe does, so that a .reg file, reg add and
// PowerShell use one name for one value.
func shortHive(key string) string {
	key = strings.ReplaceAll(key, `\\`, `\`)                                          // the string of another language
	if n := strings.IndexByte(key, '\\'); n > 0 && strings.EqualFold(key[:2], "hk") { // in either case
		key = strings.TrimSuffix(strings.ToUpper(key[:n]), "64") + key[n:] // HKLM64 of AutoIt
	}
	for long, short := range map[string]string{"HKEY_LOCAL_MACHINE": "HKLM", "HKEY_CURRENT_USER": "HKCU",
		"HKEY_USERS": "HKU"} {
		if rest, ok := strings.CutPrefix(key, long); ok {
			return short + rest
		}
	}
	return key
}

// registryLine is a line of a .reg file without its quotes, as a batch file writes it.
var registryLine = pattern.New(`^"?([A-Za-z][\w ]*?)\s*"?\s*=\s*(dword:.*)$`)

// writtenRegistry reads a line that a script writes into a .reg file: echo "NAME"=dword:1 >> x.reg.
func (r *reader) writtenRegistry(text string) bool {
	if m := registryKey.FindStringSubmatch(text); m != nil {
		r.key = shortHive(m[1])
		return true
	}
	m := registryLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	name, key := m[1], r.key
	if key == "" {
		// The key is somewhere else; most names are of one key only.
		if full := registryNamed(name); full != "" {
			key = full[len("registry:"):strings.LastIndex(full, `\`)]
		} else {
			key = strings.TrimSuffix(tcpipPath, `\`)
		}
	}
	r.add(Windows, "registry:"+key+`\`+name, registryNumber(m[2]))
	return true
}
