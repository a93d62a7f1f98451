package printed

import (
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/pattern"
)

// dateForms are the forms of date(1) in the locales of reports: C, which sos requests, and those of
// en_US.
var dateForms = []string{"Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 03:04:05 PM MST 2006",
	"Mon 2 Jan 2006 03:04:05 PM MST", "Mon 2 Jan 2006 15:04:05 MST"}

// ParseDate parses the first line of date(1). zone is that of the host; if it is nil, not known,
// only UTC is accepted, since several zones share the same letters (CST is in America and in
// China).
func ParseDate(text string, zone *time.Location) (time.Time, bool) {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.Join(strings.Fields(line), " ") // two blanks may precede the day of the month
	if zone == nil {
		zone = time.UTC
	}
	for _, form := range dateForms {
		t, err := time.ParseInLocation(form, line, zone)
		if err != nil {
			continue
		}
		// For a zone that the location does not have, the time package invents one with no offset,
		// which would be hours off without a sign of it.
		name, offset := t.Zone()
		if offset == 0 && name != "UTC" && name != "GMT" && name != "WET" {
			return time.Time{}, false
		}
		return t.UTC(), true
	}
	return time.Time{}, false
}

// upText matches the time since boot as uptime(1) of procps prints it: "up 41 days, 3:02,", "up 12
// min,", "up 1 day, 5 min,".
var upText = pattern.New(`\bup\s+(?:(\d+) days?,\s+)?(?:(\d+):(\d\d)|(\d+) min|(\d+) hours?)?,`)

// ParseUptime parses the output of uptime(1). It is exact to the minute.
func ParseUptime(text string) (time.Duration, bool) {
	m := upText.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	// days, hours and minutes of h:mm, only minutes, only hours: the groups of the expression
	var parts [5]time.Duration
	told := false
	for i, digits := range m[1:] {
		if digits == "" {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		// 100,000 days are 273 years, which a Duration holds; a report may claim any number.
		if err != nil || n > 100_000 {
			return 0, false
		}
		parts[i], told = time.Duration(n), true
	}
	return parts[0]*24*time.Hour + (parts[1]+parts[4])*time.Hour + (parts[2]+parts[3])*time.Minute, told
}

// ParseSeconds parses /proc/uptime: the seconds since boot. The idle seconds of the CPUs follow.
func ParseSeconds(text string) (time.Duration, bool) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	s, err := strconv.ParseFloat(first, 64)
	if err != nil || !(s > 0 && s < 1e10) {
		return 0, false
	}
	// A Duration ends at 292 years; no kernel is that old.
	return time.Duration(min(s, 9e9) * float64(time.Second)), true
}

// ParseUname parses "uname -a": "Linux HOST RELEASE VERSION… MACHINE PROCESSOR PLATFORM GNU/Linux".
// The version contains blanks, and some distributions omit the two words after the machine, so the
// machine is recognised by its name and not by its place.
func ParseUname(text string) (name, release, machine string) {
	words := strings.Fields(text)
	if len(words) < 4 || words[0] != "Linux" {
		return "", "", ""
	}
	for _, w := range words[3:] {
		if machines[w] {
			machine = w
		}
	}
	return words[1], words[2], machine
}

// machines are the words of uname -m. The processor and the platform after the machine are
// "unknown" or use the same words.
var machines = map[string]bool{
	"x86_64": true, "i386": true, "i486": true, "i586": true, "i686": true, "aarch64": true, "armv6l": true,
	"armv7l": true, "ppc64": true, "ppc64le": true,
	"s390x": true, "riscv64": true, "loongarch64": true, "mips64": true,
}
