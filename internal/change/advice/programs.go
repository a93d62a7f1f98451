package advice

import (
	"strings"
	"sync"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Settings in programs: files of the kernel that a program writes, and several names with their
// values on one line of a table.

var (
	// writesFile is a call with a file of the kernel and a number: WriteFile("/proc/sys/…", "1"),
	// open('/proc/sys/…', 'w').write('1').
	writesFile = pattern.New("[\"'`]((?:/proc/sys|/sys/(?:class/net|module))/[^\"'`\\s]+)[\"'`]\\s*" +
		`(?:,\s*(?:["']echo["']\s*,\s*)?` +
		`(?:['"](?:w|wt|wb|a|r\+)["']\s*\)\s*(?:\.write\w*\(|do\s*\|\w+\|\s*\w+\.(?:write|puts|print)\w*[( ])\s*)?|` +
		`\)+\s*\.write\w*\()` +
		`\s*(?:\[\]byte\(|\w+\.encode\(|&?b)?["'` + "`" + `]?(-?\d[\d \t]*)(?:\\n)?["'` + "`" + `]?\s*[,)]`)
	// opensFile is the head of a block that writes a file, and writesValueOf the line that does.
	opensFile = pattern.New(`\b(?:open|fopen|OpenFile|create|Create)\w*\(?\s*` +
		`["']((?:/proc/sys|/sys/class/net)/[^"']+)["']\s*,?(.*)$`)
	writesValueOf = pattern.New(`\b\w*(?:[wW]rite|[pP]rint|[pP]uts|echo)\w*[(\s](.*)$`)
	aNumber       = pattern.New(`["'](-?\d[\d \t]*)(?:\\n)?["']`)
	forReading    = pattern.New(`^\s*["']rb?["']|O_RDONLY|^\)?(?: as \w+:)?$`)

	// onePair is a name with its value among others on the line.
	onePair = pattern.New(`(?:^|[{\[(,\s])["']?(` + namePattern + `)(?:["']?\s*(?::|=>|=)|["']\s*,)\s*` +
		`(?:\{\s*["']?value["']?\s*(?::|=>|=)\s*)?["']?(-?\d+(?:[ \t]+\d+)*|[a-z]\w*)["']?\s*(?:[,;}\])]|$)`)
	// moreLines is the beginning of a further setting in a string of several lines.
	moreLines = pattern.New(`\\n\s*(` + namePattern + `\s*=)`)

	// cloudName is a sysctl in the words of a cloud: netCoreSomaxconn, net_core_somaxconn.
	cloudName = pattern.New(`^["']?(net(?:Core|Ipv[46]|Netfilter)[A-Z]\w+|(?:net|fs|vm)_[a-z0-9]+_\w+|vm_swappiness)` +
		`["']?\s*[:=]\s*["']?([\w-]+(?:\s+\d+)*)["']?,?$`)
	// environmentName is a sysctl as a variable of the environment, perhaps with its default.
	environmentName = pattern.New(`^(?:export\s+|ENV\s+|-\s+)?SYSCTL_((?:NET|FS|VM|KERNEL)_[A-Z0-9_]+)\s*[=:]\s*["']?` +
		`(?:\$\{\w+:?-)?(-?\d+(?: \d+)*)\}?["']?$`)
	lowerPort = "net.ipv4.ip_local_port_range"
)

// program reads a line that a program writes a file of the kernel with.
func (r *reader) program(text string) bool {
	found := false
	text = assembled.ReplaceAllString(text, "$${$1}")
	for _, m := range writesFile.FindAllStringSubmatch(text, -1) {
		found = r.written(strings.TrimSpace(m[2]), m[1]) || found
	}
	if found {
		return true
	}
	n := &r.nest
	if m := opensFile.FindStringSubmatch(text); m != nil {
		n.file, n.fileLine = m[1], r.line.number
		if forReading.MatchString(m[2]) {
			n.file = ""
		}
		return true
	}
	const reach = 4 // lines
	if n.file == "" || r.line.number > n.fileLine+reach {
		return false
	}
	m := writesValueOf.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	for _, v := range aNumber.FindAllStringSubmatch(m[1], -1) { // one of two, perhaps
		found = r.written(strings.TrimSpace(v[1]), n.file) || found
	}
	if found {
		n.file = ""
	}
	return found
}

// several reads the pairs of a line that is a part of a table. One sign may end a pair and begin
// the next one.
func (r *reader) several(text string) bool {
	found := false
	for at := onePair.FindStringSubmatchIndex(text); at != nil; at = onePair.FindStringSubmatchIndex(text) {
		name, value := text[at[2]:at[3]], boolean(text[at[4]:at[5]])
		if numbers.MatchString(value) || wordValued.MatchString(name) {
			found = r.sysctl(name, value) || found
		}
		text = text[at[5]:]
	}
	return found
}

// cloudNames are the sysctls of Linux by their letters and digits alone.
var cloudNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, t := range sysctlsOfLinux().trees {
		for _, n := range t {
			key := lettersOf(n)
			if _, twice := names[key]; twice {
				names[key] = ""
				continue
			}
			names[key] = n
		}
	}
	return names
})

func lettersOf(name string) string {
	parts := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("._-", c) })
	return strings.ToLower(strings.Join(parts, ""))
}

// cloud reads a sysctl of AKS, in the words of its API, of Bicep or of Terraform. The range of
// ports may be two keys.
func (r *reader) cloud(text string) bool {
	if m := environmentName.FindStringSubmatch(text); m != nil {
		name := cloudNames()[lettersOf(m[1])]
		return name != "" && r.sysctl(name, m[2])
	}
	m := cloudName.FindStringSubmatch(text)
	if m == nil || r.used[m[1]] {
		return false
	}
	key, value := lettersOf(m[1]), boolean(m[2])
	if end, ok := strings.CutPrefix(key, lettersOf(lowerPort)); ok && (end == "min" || end == "max") {
		n := &r.nest
		if n.port == "" {
			n.port = value
			return true
		}
		if value, n.port = n.port+" "+value, ""; end == "min" {
			first, last, _ := strings.Cut(value, " ")
			value = last + " " + first
		}
		return r.sysctl(lowerPort, value)
	}
	name := cloudNames()[key]
	return name != "" && r.sysctl(name, value) || m[1][0] != 'n' // others than the network's
}

// holdsCommand reports whether one of the commands of a string is such a command, or writes a file
// of the kernel.
func holdsCommand(text string) bool {
	const shortestCommand = 6 // bytes, of which no command that sets something has fewer
	if writesKernel.MatchString(text) || writesFileOf.MatchString(text) {
		return true
	}
	for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ';' || c == '&' || c == '|' }) {
		if len(part) > shortestCommand && settingCommands.MatchString(part) {
			return true
		}
	}
	return false
}

// writesFileOf is a command that puts a setting into a file of settings.
var writesFileOf = pattern.New(`^\s*(?:sudo\s+)?echo\s.*=.*(?:>>?|\btee(?:\s+-a)?)\s*["']?\S*` +
	`(?:(?:sysctl|loader)\.conf|sysctl\.d/|modprobe\.d/)`)

// pairWithCall is a tuple of a name and what a program works out: ("net.core.rmem_max", str(size)).
var pairWithCall = pattern.New(`^[({\[]\s*["'](` + namePattern +
	`)["']\s*,\s*(?:str\()?([A-Za-z_][\w.]*)\)?\s*[)}\]],?$`)

// modulesToLoad is a list of modules with their parameters, each in one string.
var modulesToLoad = pattern.New(`^kernel_modules\s*=\s*\[(.*)\]$`)
