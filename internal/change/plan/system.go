package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/advice"
)

// System is an operating system with its release.
type System struct {
	OS      advice.OS
	Name    string // as the user writes it: debian, freebsd, omnios
	Release string // as the user writes it: 12, 14.2, 2022
	// Judged is the release that settings are judged for: the kernel of a distribution, or Release.
	// nil is the newest.
	Judged  advice.Release
	manner  manner // Linux: what brings interfaces up
	systemd int    // Linux: its version; 0: none, or not known
}

// manner is the program that brings the interfaces of a distribution up.
type manner string

const (
	ifupdown       manner = "ifupdown"
	networkManager manner = "NetworkManager"
	networkd       manner = "systemd-networkd"
	busybox        manner = "ifupdown of busybox" // no systemd, no udev
)

// kernel is the kernel of one release of a distribution, and its systemd.
type kernel struct {
	release, kernel string
	systemd         int
}

// distribution is a Linux by its name, with what its releases have.
type distribution struct {
	names   []string
	manner  manner
	kernels []kernel // oldest first; an empty release: it has no releases
}

// distributions are those whose releases are known, with kernel and systemd of the first
// installation medium. Source: release notes and package lists of each.
var distributions = []distribution{
	{[]string{"debian", "raspbian"}, ifupdown,
		[]kernel{{"10", "4.19", 241}, {"11", "5.10", 247}, {"12", "6.1", 252}, {"13", "6.12", 257}}},
	{[]string{"ubuntu"}, networkd, []kernel{{"18.04", "4.15", 237}, {"20.04", "5.4", 245}, {"22.04", "5.15", 249},
		{"24.04", "6.8", 255}, {"25.10", "6.17", 257}}},
	{[]string{"rhel", "rocky", "alma", "almalinux", "centos", "oracle"}, networkManager,
		[]kernel{{"7", "3.10", 219}, {"8", "4.18", 239}, {"9", "5.14", 250}, {"10", "6.12", 257}}},
	{[]string{"fedora"}, networkManager, []kernel{{"41", "6.11", 256}, {"42", "6.14", 257}, {"43", "6.17", 258}}},
	{[]string{"sles", "suse"}, networkManager,
		[]kernel{{"15.5", "5.14", 249}, {"15.6", "6.4", 254}, {"15.7", "6.4", 254}, {"16", "6.12", 257}}},
	{[]string{"alpine"}, busybox, []kernel{{"3.20", "6.6", 0}, {"3.21", "6.12", 0}, {"3.22", "6.12", 0}}},
	{[]string{"arch", "archlinux"}, networkd, []kernel{{"", "", 258}}},
}

// others are the systems other than Linux, and Linux by its kernel.
var others = []struct {
	os       advice.OS
	names    []string
	releases []string // oldest first; none: any
}{
	{advice.FreeBSD, []string{"freebsd", "opnsense", "pfsense"},
		[]string{"5", "6", "13", "14", "15"}},
	{advice.Solaris, []string{"solaris", "sunos"}, []string{"9", "10", "11"}},
	{advice.Illumos, []string{"illumos", "openindiana", "omnios", "smartos", "tribblix"}, nil},
	{advice.Windows, []string{"windows"}, []string{"xp", "2003", "10", "11", "2016", "2019",
		"2022", "2025"}},
}

// Names returns the systems that a plan can be for, one name for each.
func Names() []string {
	names := []string{"linux"}
	for _, d := range distributions {
		names = append(names, d.names[0])
	}
	for _, o := range others {
		names = append(names, o.names[0])
	}
	return names
}

// UnknownError reports a name that is not known, with the nearest one.
type UnknownError struct {
	What, Name, Nearest string
	Known               []string
}

func (e *UnknownError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: not given; known are %s", e.What, strings.Join(e.Known, ", "))
	}
	return fmt.Sprintf("%s %q: not known; the nearest is %s (known: %s)", e.What, e.Name, e.Nearest,
		strings.Join(e.Known, ", "))
}

// oldestKernel and newestMajor bound the kernels of plans.
var oldestKernel = advice.Release{2, 6, 17}

const newestMajor = 9

// ParseSystem reads a system and its release. Linux is a distribution with its release, or "linux"
// with that of a kernel; a release of illumos is not looked at.
func ParseSystem(name, of string) (System, error) {
	word := strings.ToLower(strings.TrimSpace(name))
	// "Windows Server 2022" and "FreeBSD 14.2" in one.
	if first, rest, ok := strings.Cut(word, " "); ok && of == "" {
		word, of = first, strings.TrimSpace(strings.TrimPrefix(rest, "server"))
	}
	of = strings.TrimSpace(strings.TrimPrefix(strings.ToLower(of), "server"))
	s := System{Name: word, Release: of}
	if word == string(advice.Linux) {
		s.OS, s.manner = advice.Linux, networkd
		if of == "" {
			return s, nil
		}
		r, err := advice.ParseRelease(advice.Linux, of)
		s.Judged = r
		// 14.2 with linux is another system's release, and the facts begin with the buffers that grow
		// to 4 MiB (2.6.17): an older kernel would get the defaults of today.
		if err == nil && (slices.Compare(r, oldestKernel) < 0 || r[0] > newestMajor) {
			err = fmt.Errorf("--release of linux %q: plans know the kernels 2.6.17 to %d.x", of, newestMajor)
		}
		return s, err
	}
	for _, d := range distributions {
		if slices.Contains(d.names, word) {
			return d.system(s)
		}
	}
	for _, o := range others {
		if slices.Contains(o.names, word) {
			s.OS = o.os
			return s, s.among(o.releases)
		}
	}
	return s, unknown("--os", word, Names())
}

// system finds the kernel of a release. A point release has the kernel of its release.
func (d distribution) system(s System) (System, error) {
	s.OS, s.manner = advice.Linux, d.manner
	var known []string
	for _, k := range d.kernels {
		known = append(known, k.release)
		if k.release == "" || s.Release == k.release || strings.HasPrefix(s.Release, k.release+".") {
			s.systemd = k.systemd
			if k.kernel != "" {
				s.Judged, _ = advice.ParseRelease(advice.Linux, k.kernel) // ours
			}
			return s, nil
		}
	}
	return s, unknown("--release of "+s.Name, s.Release, known)
}

// among reads the release of a system other than Linux.
func (s *System) among(releases []string) error {
	if len(releases) == 0 {
		return nil
	}
	text := strings.ReplaceAll(s.Release, " ", "")
	if s.OS == advice.Solaris {
		text = strings.TrimPrefix(text, "5.") // SunOS 5.11 is Solaris 11
	}
	for _, r := range releases {
		point := strings.HasPrefix(text, r+".") || strings.HasPrefix(text, r+"-")
		// 2003 R2 and XP SP3 have the stack of 2003 and XP.
		edition := r == "2003" && text == "2003r2" || r == "xp" && strings.HasPrefix(text, "xpsp")
		if text != r && !point && !edition {
			continue
		}
		if s.OS == advice.Windows {
			text = r
		}
		var err error
		s.Judged, err = advice.ParseRelease(s.OS, text)
		return err
	}
	return unknown("--release of "+s.Name, s.Release, releases)
}

// old reports whether the system is in the plan for the record.
func (s System) old() bool {
	return s.OS == advice.FreeBSD && s.major() < 7 || s.OS == advice.Solaris && s.major() < 10 ||
		s.OS == advice.Windows && s.major() < 6
}

// major is the first number of the release that settings are judged for; a large one for the
// newest.
func (s System) major() int {
	if len(s.Judged) == 0 {
		return 1 << 20
	}
	return s.Judged[0]
}

// String is the name with the release, as users write it.
func (s System) String() string {
	name := s.Name
	for _, w := range [][2]string{{"freebsd", "FreeBSD"}, {"solaris", "Solaris"}, {"linux", "Linux"}, {"debian", "Debian"},
		{"ubuntu", "Ubuntu"}, {"rhel", "RHEL"}, {"fedora", "Fedora"}, {"sles", "SLES"}, {"alpine", "Alpine"},
		{"arch", "Arch"}} {
		if name == w[0] {
			name = w[1]
		}
	}
	of := s.Release
	if s.OS == advice.Windows {
		name = "Windows"
		if len(of) == 4 {
			name = "Windows Server"
		}
		if of == "xp" {
			of = "XP"
		}
	}
	return strings.TrimSpace(name + " " + of)
}

// ParseRole reads a role.
func ParseRole(text string) (Role, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	var known []string
	for _, r := range Roles() {
		if string(r) == word {
			return r, nil
		}
		known = append(known, string(r))
	}
	switch word {
	case "cache", "webserver", "web/cache", "proxy":
		return Web, nil
	case "dns", "resolver", "named":
		return Nameserver, nil
	}
	return "", unknown("--role", word, known)
}

// unknown makes the error for a name, with the nearest known one: for numbers the next one, for
// words the one with the fewest letters changed.
func unknown(what, name string, known []string) error {
	best, least := "", 0.0
	for _, k := range known {
		if d := apart(name, k); best == "" || d < least {
			best, least = k, d
		}
	}
	return &UnknownError{What: what, Name: name, Nearest: best, Known: known}
}

// apart is how far two names are from each other. Two numbers are as far as they differ.
func apart(a, b string) float64 {
	x, err := strconv.ParseFloat(leading(a), 64)
	y, err2 := strconv.ParseFloat(leading(b), 64)
	if err == nil && err2 == nil {
		return max(x, y) - min(x, y)
	}
	if (err == nil) != (err2 == nil) {
		return 1 << 20
	}
	// The letters that both have, in their order (the longest common subsequence).
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			up := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = cmp.Or(max(up, row[j]), 0)
			}
			diagonal = up
		}
	}
	return float64(len(a) + len(b) - 2*row[len(b)])
}

// leading is the number that a text begins with, up to a second dot.
func leading(s string) string {
	dots := 0
	for i, r := range s {
		if r == '.' {
			dots++
		}
		if r != '.' && (r < '0' || r > '9') || dots > 1 {
			return s[:i]
		}
	}
	return s
}
