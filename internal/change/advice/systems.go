package advice

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// The BSDs and macOS share most names of sysctls and little of what they do. These are the first
// parts of names that only one of them has.
//
// Sources: sysctl(7) of NetBSD, sysctl(2) of OpenBSD, bsd/netinet of Darwin; tcp(4), inet(4) and
// iflib(4) of FreeBSD.
var ownNames = []struct {
	os    OS
	names []string
}{
	{NetBSD, []string{"kern.sbmax", "kern.somaxkva", "kern.mbuf.", "net.inet.ip.anonport", "net.inet.tcp.init_win",
		"net.inet.tcp.congctl.", "net.inet.tcp.abc.", "net.inet.tcp.mss_ifmtu", "net.inet.tcp.timestamps",
		"net.inet.tcp.cwm", "net.inet.tcp.vtw.",
		"net.inet.tcp.local_by_rtt", "vm.anonmin", "vm.anonmax", "vm.filemin", "vm.filemax", "vm.execmin", "vm.execmax",
		"vm.bufcache", "security.pax.", bothHave}},
	{OpenBSD, []string{"net.inet.ip.ifq.", "net.inet6.ip6.ifq.", "net.inet.ip.mtudisc", "net.inet.ip.portfirst",
		"net.inet.ip.porthifirst", "net.inet.ip.portlast", "kern.bufcachepercent", "kern.maxclusters",
		"kern.nosuidcoredump", "net.pipex.", "net.inet.tcp.ackonpush", "net.inet.tcp.sackholelimit",
		"machdep.allowaperture", "net.inet.tcp.synuselimit"}},
	{Darwin, []string{"net.inet.tcp.win_scale_factor", "net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax",
		"net.inet.tcp.randomize_ports", "net.inet.tcp.doautorcvbuf", "net.inet.tcp.doautosndbuf",
		"net.inet.tcp.ecn_initiate_out", "net.inet.tcp.ecn_negotiate_in", "kern.ipc.sockthreshold",
		"debug.lowpri_throttle_enabled", "iogpu.", "net.link.generic.system.", "vm.compressor"}},
	{FreeBSD, []string{"net.isr.", "net.iflib.", "net.inet.tcp.cc.", "net.inet.tcp.syncache.", "net.inet.tcp.hostcache.",
		"net.inet.tcp.fast_finwait2_recycle", "net.inet.tcp.recvbuf_inc", "net.inet.tcp.sendbuf_inc",
		"net.inet.tcp.inflight", "kern.ipc.nmb", "kern.polling.", "kern.ipc.soacceptqueue",
		"net.inet.tcp.nolocaltimewait", "net.inet.ip.fastforwarding", "net.inet.ip.intr_queue_maxlen", "hint.", "hw.igb.",
		"hw.em.", "hw.ix.", "dev.igb.", "dev.em.", "dev.ix.", "vfs.zfs.", "kern.randompid"}},
}

// bothHave is a name of NetBSD and OpenBSD alone: it decides between neither of them.
const bothHave = "kern.somaxconn"

// sharedNames are those of OpenBSD's names that NetBSD has as well (pktqueue(9)): in a text of
// NetBSD they are of it.
var sharedNames = []string{"net.inet.ip.ifq.", "net.inet6.ip6.ifq."}

// systemWords name a system in the words of a text; those of the programs that end in bsd do not.
var systemWords = []struct {
	os    OS
	words *pattern.Pattern
}{
	{NetBSD, pattern.New(`\bNetBSD\b`)},
	{OpenBSD, pattern.New(`\bOpenBSD\b`)},
	// FreeBSD's sysctl(8) needs no -w, and its users seldom have sudo.
	{Darwin, pattern.New(`(?i:\b(?:mac ?os|os ?x|darwin|networksetup|pmset|brew install|launchctl|scutil|` +
		`nvram boot-args|dscacheutil|mdnsresponder|` +
		`defaults write)\b|/Library/Launch|/Users/|/usr/sbin/sysctl\b|sudo sysctl -w +net\.inet)|` +
		`\bMacs?\b(?: [^aA]|[^ \w])`)},
	{FreeBSD, pattern.New(`\b(?:FreeBSD|pfSense|OPNsense)\b`)},
}

// ownerOf returns the one system that has a name, or false.
func ownerOf(name string) (OS, bool) {
	for _, o := range ownNames {
		for _, p := range o.names {
			if strings.HasPrefix(name, p) {
				return o.os, true
			}
		}
	}
	return "", false
}

// netBSDHas reports whether NetBSD has a sysctl, by its whole name, that FreeBSD is known not to
// have. A single command has no other names beside it that would decide.
func netBSDHas(id string) bool {
	_, ours := factOf(FreeBSD, id)
	return ofNetBSD(id) && !ours && unknownName(FreeBSD, id, false)
}

// ofNetBSD reports whether the facts have a sysctl of NetBSD by its whole name.
func ofNetBSD(id string) bool {
	f, ok := factOf(NetBSD, id)
	return ok && f.OS == NetBSD && !strings.Contains(f.Knob, "*")
}

// systemHead is the head of a section of a page about one system, and no more than that.
var systemHead = pattern.New(`^(#{1,6})\s+(?:\w+\s+){0,2}(\w+)(?:\s+\w+)?\s*:?$`)

// sectionsOf returns the systems of the lines of a page that has sections for several. A comment of
// a script looks like a head of the first level, so that only deeper ones count.
func sectionsOf(text string) map[int]OS {
	named := table("netbsd=netbsd openbsd=openbsd freebsd=freebsd macos=darwin osx=darwin")
	of, seen := map[int]OS{}, map[OS]bool{}
	now, level, code := OS(""), 0, false
	for n, t := range strings.Split(text, "\n") {
		t = strings.TrimSpace(t)
		if strings.HasPrefix(t, "```") {
			code = !code
		}
		if depth := len(t) - len(strings.TrimLeft(t, "#")); depth > 1 && !code && strings.HasPrefix(t[depth:], " ") {
			m := systemHead.FindStringSubmatch(t)
			switch {
			case m != nil && named[strings.ToLower(m[2])] != "":
				now, level = OS(named[strings.ToLower(m[2])]), depth
				seen[now] = true
			case depth <= level:
				now = ""
			}
		}
		if now != "" {
			of[n+1] = now
		}
	}
	if len(seen) < 2 {
		return nil
	}
	return of
}

// tellSystems decides for the sysctls of a BSD which one they are of. A name that only one system
// has is of that system. The others go with the names around them, and with the words of the text
// where no name decides; FreeBSD, whose advice is by far the most frequent, where nothing does.
func (r *reader) tellSystems(text string) {
	count := map[OS]int{}
	for _, s := range r.advice.Settings {
		if name, ok := strings.CutPrefix(s.Knob, "sysctl:"); ok && s.OS == FreeBSD {
			// Names that FreeBSD shares with NetBSD alone decide between neither of them.
			if o, ok := ownerOf(name); ok && !(o == FreeBSD && ofNetBSD(s.Knob)) && name != bothHave {
				count[o]++
			}
		}
	}
	usual, most := FreeBSD, count[FreeBSD]
	for _, o := range ownNames {
		if count[o.os] > most {
			usual, most = o.os, count[o.os]
		}
	}
	// A name of FreeBSD alone does not make a script for macOS one of FreeBSD: pages copy such
	// names, and macOS lacks them.
	copied := false
	if usual == FreeBSD {
		words := map[OS]int{}
		for _, w := range systemWords {
			words[w.os] = len(w.words.FindAllStringIndex(text, 50))
		}
		for _, w := range systemWords {
			if n := words[w.os]; n > most && count[FreeBSD] == 0 {
				usual, most = w.os, n
			}
		}
		if count[FreeBSD] > 0 && words[Darwin] >= count[FreeBSD] && words[FreeBSD] == 0 {
			usual, copied = Darwin, true
		}
	}
	// Names of the memory of Linux among sysctls of a BSD alone are meant for that one, which does
	// not have them.
	strayed := count[usual] > 0
	for _, s := range r.advice.Settings {
		strayed = strayed && (s.OS != Linux || strings.HasPrefix(s.Knob, "sysctl:vm."))
	}
	sections := sectionsOf(text)
	for i := range r.advice.Settings {
		s := &r.advice.Settings[i]
		name, ok := strings.CutPrefix(s.Knob, "sysctl:")
		if o := sections[s.Line]; ok && o != "" && s.OS == FreeBSD {
			s.OS = o
			continue
		}
		if usual == Darwin && s.OS == FreeBSD && strings.HasPrefix(s.Knob, "ifconfig:") {
			s.OS = Darwin
		}
		if !ok || s.OS != FreeBSD && !(strayed && s.OS == Linux) {
			continue
		}
		s.OS = usual
		shared := usual == OpenBSD && name == bothHave || usual == NetBSD && (ofNetBSD(s.Knob) ||
			slices.ContainsFunc(sharedNames, func(p string) bool { return strings.HasPrefix(name, p) }))
		if o, ok := ownerOf(name); ok && !shared && !(copied && o == FreeBSD) {
			s.OS = o
		} else if usual == FreeBSD && netBSDHas(s.Knob) {
			s.OS = NetBSD
		}
	}
}
