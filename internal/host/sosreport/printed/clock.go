package printed

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// dateForms are those of date(1) in the locales that reports come from: C, which sos asks for, and
// those of en_US.
var dateForms = []string{"Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 03:04:05 PM MST 2006",
	"Mon 2 Jan 2006 03:04:05 PM MST", "Mon 2 Jan 2006 15:04:05 MST"}

// ParseDate reads the first line of date(1). zone is where the host is; nil: not known, and then
// UTC alone can be believed, since the letters of a zone are those of several (CST is in America
// and in China).
func ParseDate(text string, zone *time.Location) (time.Time, bool) {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.Join(strings.Fields(line), " ") // the day of the month may have two blanks before it
	if zone == nil {
		zone = time.UTC
	}
	for _, form := range dateForms {
		t, err := time.ParseInLocation(form, line, zone)
		if err != nil {
			continue
		}
		// A zone that the location does not have is made up by the time package, with no offset:
		// hours off, and nothing would tell.
		name, offset := t.Zone()
		if offset == 0 && name != "UTC" && name != "GMT" && name != "WET" {
			return time.Time{}, false
		}
		return t.UTC(), true
	}
	return time.Time{}, false
}

// How uptime(1) of procps writes the time since boot: "up 41 days, 3:02,", "up 12 min,", "up 1 day,
// 5 min,".
var upText = regexp.MustCompile(`\bup\s+(?:(\d+) days?,\s+)?(?:(\d+):(\d\d)|(\d+) min|(\d+) hours?)?,`)

// ParseUptime reads it. It is exact to the minute.
func ParseUptime(text string) (time.Duration, bool) {
	m := upText.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	// days, hours and minutes of h:mm, minutes alone, hours alone: the groups of the expression
	var parts [5]time.Duration
	told := false
	for i, digits := range m[1:] {
		if digits == "" {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		// 100,000 days are 273 years, within what a Duration holds; a report may claim anything.
		if err != nil || n > 100_000 {
			return 0, false
		}
		parts[i], told = time.Duration(n), true
	}
	return parts[0]*24*time.Hour + (parts[1]+parts[4])*time.Hour + (parts[2]+parts[3])*time.Minute, told
}

// ParseSeconds reads /proc/uptime: seconds since boot, and behind them those in which the
// processors were idle.
func ParseSeconds(text string) (time.Duration, bool) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	s, err := strconv.ParseFloat(first, 64)
	if err != nil || !(s > 0 && s < 1e10) {
		return 0, false
	}
	// Beyond 292 years a Duration ends; no kernel is that old.
	return time.Duration(min(s, 9e9) * float64(time.Second)), true
}

// ParseUname reads "uname -a": "Linux HOST RELEASE VERSION… MACHINE PROCESSOR PLATFORM GNU/Linux".
// The version has blanks in it and the two behind the machine are left out by some distributions,
// so the machine is known by its name and not by its place.
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

// machines are the words of uname -m. The processor and the platform behind the machine are
// "unknown" or of the same words.
var machines = map[string]bool{
	"x86_64": true, "i386": true, "i486": true, "i586": true, "i686": true, "aarch64": true, "armv6l": true,
	"armv7l": true, "ppc64": true, "ppc64le": true,
	"s390x": true, "riscv64": true, "loongarch64": true, "mips64": true,
}
