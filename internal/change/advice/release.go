package advice

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is a version number of a system, most significant part first. The zero value is the
// newest release.
//
// Parts are compared as numbers: 6.18 is newer than 6.9, which comparing texts gets wrong, and
// 2.6.39 older than 3.0.
type Release []int

// windowsReleases maps the names under which Windows is sold to the numbers of its kernel. The
// server of a pair is listed under its year; source: "Operating System Version",
// learn.microsoft.com/windows/win32/sysinfo.
var windowsReleases = map[string]Release{
	"2000": {5, 0}, "xp": {5, 1}, "2003": {5, 2}, "vista": {6, 0}, "2008": {6, 0}, "7": {6, 1}, "2008r2": {6, 1},
	"8": {6, 2}, "2012": {6, 2}, "8.1": {6, 3}, "2012r2": {6, 3}, "10": {10, 0}, "11": {10, 0},
	"2016": {10, 0}, "2019": {10, 0}, "2022": {10, 0}, "2025": {10, 0},
}

// ParseRelease reads a release of a system: 6.18 or 6.18.44-generic (Linux), 14.1-RELEASE
// (FreeBSD), 11.4 or 5.11 (Solaris, the second as uname prints it), xp, 2003, 7, 10 or 6.1
// (Windows, by name or by kernel version).
func ParseRelease(o OS, s string) (Release, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	if r, ok := windowsReleases[strings.ReplaceAll(text, " ", "")]; ok && o == Windows {
		return r, nil
	}
	// Distributions append their own versions: 5.15.0-91-generic, 4.18.0-553.el8, 14.1-RELEASE-p5.
	// The suffix identifies their backports, in no comparable form, and is ignored.
	var r Release
	for _, part := range strings.Split(text, ".") {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, err := strconv.Atoi(digits)
		// No system counts so far; a number that long is a date or a mistake, and would overflow in
		// a sum.
		if err != nil || n > 1<<20 {
			break
		}
		r = append(r, n)
		if digits != part {
			break // what follows the last number is the maker's own: -generic, -RELEASE, rc3
		}
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("release %q: does not begin with a number like 6.18", s)
	}
	if o.family() == Solaris && len(r) > 1 && r[0] == 5 {
		r = r[1:] // SunOS 5.11 is Solaris 11
	}
	return r, nil
}

// before reports whether r is older than other. The newest is older than nothing.
func (r Release) before(other Release) bool {
	if len(r) == 0 {
		return false
	}
	// A missing part is 0: 6.18 is what 6.18.0 is, and is not older than it.
	for i, n := range other {
		mine := 0
		if i < len(r) {
			mine = r[i]
		}
		if mine != n {
			return mine < n
		}
	}
	return false
}
