package advice

import (
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// ndd reads `ndd -set /dev/tcp PARAMETER VALUE` of Solaris; -get sets nothing. HP-UX has a program
// of the same name and form, with other parameters; parameters without a fact here stay unknown.
func (r *reader) ndd(c, _ command) bool {
	// The driver is part of the name: tcp_max_buf of /dev/tcp and of another module are two
	// parameters.
	w := c.words
	if len(w) >= 5 && w[1] == "-set" {
		driver := strings.TrimPrefix(w[2], "/dev/")
		if driver == "ip6" { // the same driver; its parameters have the 6 in their own names
			driver = "ip"
		}
		r.add(Solaris, "ndd:"+driver+"/"+w[3], w[4])
	}
	return true
}

// ipadm reads `ipadm set-prop -p NAME=VALUE PROTOCOL` and `ipadm set-ifprop -p mtu=… -m ipv4
// INTERFACE`.
func (r *reader) ipadm(c, _ command) bool {
	if len(c.words) < 2 {
		return true
	}
	// The last word is the protocol or the interface that the property belongs to; -t (until
	// reboot) makes no other setting of it.
	last := c.words[len(c.words)-1]
	switch c.words[1] {
	case "set-prop":
		r.properties(c, func(name, value string) { r.add(Solaris, "ipadm:"+last+"/"+name, value) })
	case "set-ifprop":
		r.properties(c, func(name, value string) { r.add(Solaris, "ipadm:"+last+"/"+name, value) })
	}
	return true
}

// svccfg reads `svccfg -s SERVICE setprop tcp/NAME = integer: VALUE`, of a service that sets
// parameters at boot. It has an underscore before a private name of ipadm(8) as U.
func (r *reader) svccfg(c, _ command) bool {
	at := slices.Index(c.words, "setprop")
	if at < 0 || at+2 >= len(c.words) {
		return true
	}
	protocol, name, _ := strings.Cut(c.words[at+1], "/")
	value := c.words[len(c.words)-1]
	switch {
	case !protocolsOfSolaris[protocol] || !numbers.MatchString(value):
	case strings.HasPrefix(name, protocol+"_"):
		r.add(Solaris, "ndd:"+protocol+"/"+name, value)
	default:
		if private, ok := strings.CutPrefix(name, "U"); ok {
			name = "_" + private
		}
		r.add(Solaris, "ipadm:"+protocol+"/"+name, value)
	}
	return true
}

var protocolsOfSolaris = setOf(`tcp udp ip ipv4 ipv6 icmp sctp`)

// dladm reads `dladm set-linkprop -p NAME=VALUE LINK`. It is for links what ipadm is for protocols:
// the MTU and the flow control of a NIC have been there since Solaris 11 and OpenSolaris 2009
// (dladm(8)).
func (r *reader) dladm(c, _ command) bool {
	if len(c.words) > 2 && c.words[1] == "set-linkprop" {
		last := c.words[len(c.words)-1]
		r.properties(c, func(name, value string) { r.add(Solaris, "dladm:"+last+"/"+name, value) })
	}
	return true
}

// routeadm reads `routeadm -e ipv4-forwarding`, which is the property forwarding of ipadm
// (routeadm(8)). Routing daemons are no settings.
func (r *reader) routeadm(c, _ command) bool {
	for i, w := range c.words[1:] {
		state := table("-e=on -d=off")[w]
		if state == "" || i+2 >= len(c.words) {
			continue
		}
		if protocol, ok := strings.CutSuffix(c.words[i+2], "-forwarding"); ok {
			r.add(Solaris, "ipadm:"+protocol+"/forwarding", state)
		}
	}
	return true
}

// properties returns the NAME=VALUE of every -p. A list behind one -p (a=1,b=2) is one property
// with a comma in its value to us: values of some properties hold commas themselves.
func (r *reader) properties(c command, f func(name, value string)) {
	for i, w := range c.words {
		if (w == "-p" || w == "--prop") && i+1 < len(c.words) {
			if name, value, ok := strings.Cut(c.words[i+1], "="); ok {
				f(name, value)
			}
		}
	}
}

// netshTags are names that netsh completes, as any beginning of a name (netsh(1) help: "tags"),
// where another one begins in the same way, and the objects of set.
var netshTags = []string{"autotuninglevel", "ecncapability", "maxsynretransmissions", "randomizeidentifiers"}
var netshObjects = []string{"global", "heuristics", "supplemental", "subinterface", "interface", "security"}

// supplemental are the values of `set supplemental TEMPLATE` in their order, when their names are
// left out.
var supplemental = []string{"minrto", "icw", "congestionprovider", "enablecwndrestart", "delayedacktimeout",
	"delayedackfrequency", "rack", "taillossprobe"}

// netsh reads `netsh interface CONTEXT set OBJECT NAME=VALUE …` and its abbreviations, the objects
// whose values come without names, and the MTU of `netsh interface ipv4 set subinterface`. A set of
// something else is reported as not understood.
func (r *reader) netsh(c, _ command) bool {
	var words []string
	all := withoutBlanks(c.words[1:])
	if len(all) > 0 && strings.HasPrefix(all[0], "@(") { // a list of PowerShell
		all = strings.FieldsFunc(strings.Join(all, " "), func(c rune) bool { return strings.ContainsRune("@(), ", c) })
	}
	for _, w := range all {
		if !strings.Contains(w, "(") {
			w = strings.TrimRight(w, "),") // of a batch file: (netsh …), and of a call of AutoHotkey
		}
		words = append(words, strings.ToLower(w))
	}
	// Tunnels of IPv6 are contexts of their own, also below ipv6: interface ipv6 6to4 set state ….
	if len(words) > 4 && words[1] == "ipv6" && words[3] == "set" {
		words = append(words[:1], words[2:]...)
	}
	// The send buffers of sockets: netsh winsock set autotuning on.
	if len(words) == 4 && words[0] == "winsock" && words[1] == "set" {
		r.add(Windows, "netsh:winsock/"+words[2], words[3])
		return true
	}
	if len(words) < 4 || !strings.HasPrefix("interface", words[0]) || words[2] != "set" {
		return true
	}
	// These give addresses, names and states, as the settings window does.
	switch words[3] {
	case "address", "dns", "dnsservers", "dnsserver", "wins", "winsservers", "route", "neighbors", "excludedportrange":
		return true
	}
	// "int tcp", "interface ip" and "int ipv4" are the usual forms. store= selects persistence and
	// template= the kind of network: neither changes the setting.
	context, object, rest := words[1], words[3], words[4:]
	if at := slices.IndexFunc(rest, func(w string) bool { return strings.HasPrefix(w, "(") }); at >= 0 {
		rest = rest[:at] // a remark of a page
	}
	if context == "ipv4" {
		context = "ip"
	}
	object = completed(object, netshObjects)
	switch {
	case strings.HasPrefix(object, "dynamicport"):
		r.dynamicPorts(context, rest)
		return true
	case object == "state" && len(rest) > 0: // isatap, teredo, 6to4
		r.add(Windows, "netsh:"+context+"/state", strings.TrimPrefix(strings.TrimPrefix(rest[0], "state="), "type="))
		return true
	case (object == "teredo" || object == "privacy") && len(rest) > 0: // of ipv6
		value := strings.TrimPrefix(strings.TrimPrefix(rest[0], "state="), "type=")
		if object == "teredo" {
			context, object = "teredo", "state"
		}
		r.add(Windows, "netsh:"+context+"/"+object, netshWord(value))
		return true
	}
	before := len(r.advice.Settings)
	position := -1 // the template comes first
	for i, w := range rest {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case ok && name != "store" && name != "template" && name != "interface" && name != "name":
			name = netshTag(context, name)
			if object == "global" && notGlobal[name] {
				name = "global." + name
			}
			r.add(Windows, "netsh:"+context+"/"+name, netshWord(value))
		case !ok && object == "subinterface" && i == 1 && numbers.MatchString(w): // behind the interface
			r.add(Windows, "netsh:"+context+"/mtu", w)
		case !ok && object == "compartment" && i == 1 && numbers.MatchString(w): // behind its number
			r.add(Windows, "netsh:"+context+"/defaultcurhoplimit", w)
		case !ok && object == "heuristics":
			r.add(Windows, "netsh:"+context+"/heuristics", netshWord(w))
		case !ok && object == "supplemental":
			if position >= 0 && position < len(supplemental) && (numbers.MatchString(w) || position >= 2) {
				r.add(Windows, "netsh:"+context+"/"+supplemental[position], w)
			}
			position++
		}
	}
	// A template or an interface alone sets nothing.
	if len(r.advice.Settings) == before && (len(rest) > 1 || strings.HasPrefix(r.shown, "|")) { // a value in another cell
		r.unread()
	}
	return true
}

// netshTag completes the beginning of a name: the shortest one that the facts know, as fastopen
// and fastopenfallback begin alike.
func netshTag(context, name string) string {
	context = "netsh:" + context + "/"
	if full := completed(name, netshTags); full != name || factsByName()[context+name] != nil {
		return full
	}
	best := name
	for id := range factsByName() {
		full, ok := strings.CutPrefix(id, context)
		if ok && len(name) >= 3 && strings.HasPrefix(full, name) && (best == name || len(full) < len(best) ||
			len(full) == len(best) && full < best) {
			best = full
		}
	}
	return best
}

// completed returns the word of a list that begins with a name of three letters or more.
func completed(name string, words []string) string {
	for _, full := range words {
		if len(name) >= 3 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return name
}

// notGlobal are options that an interface or a template has, and the whole system has not, or no
// longer.
var notGlobal = setOf(`congestionprovider forwarding advertise mtu nud metric weakhostsend weakhostreceive routerdiscovery
	retransmittime`)

// netshWord completes the beginning of the words that switches and the level of auto-tuning have:
// dis, en, high.
func netshWord(value string) string {
	for _, full := range []string{"disabled", "enabled", "highlyrestricted", "restricted", "experimental",
		"initialwindow"} {
		if len(value) < len(full)-1 && value != "" && strings.HasPrefix(full, value) {
			return full
		}
	}
	return value
}

// dynamicPorts reads the range of ports of outgoing connections. The first port and the number of
// ports are one setting: the system refuses each alone, and neither means anything without the
// other.
func (r *reader) dynamicPorts(context string, words []string) {
	var start, count string
	for _, w := range words {
		name, value, named := strings.Cut(w, "=")
		if _, err := strconv.Atoi(name); err == nil && !named { // in their order
			name, value = "start", w
			if start != "" {
				name = "num"
			}
		}
		switch name {
		case "start", "startport":
			start = value
		case "num", "numberofports":
			count = value
		}
	}
	if start != "" && count != "" {
		r.add(Windows, "netsh:"+context+"/dynamicport", start+" "+count)
	}
}

// reg reads `reg add KEY /v NAME /t TYPE /d DATA`.
func (r *reader) reg(c, _ command) bool {
	w := c.words
	if len(w) < 3 || !strings.EqualFold(w[1], "add") {
		return true
	}
	// The type is ignored: a number is a number in REG_SZ too, a common mistake, and the name
	// decides. Options come in any order and case; a value without data is set to nothing and is
	// skipped.
	name, data := "", ""
	for i := 3; i+1 < len(w); i++ {
		switch strings.ToLower(w[i]) {
		case "/v":
			name = w[i+1]
		case "/d":
			data = w[i+1]
		}
	}
	// /v "NAME"=dword:1, out of a .reg file: all of it becomes the name of an empty value.
	if data != "" || strings.Contains(name, "=") {
		key := shortHive(w[2])
		if r.nicKeys[strings.ToLower(key)] {
			key = nicClass + `\` + key
		}
		r.add(Windows, "registry:"+key+`\`+name, number(data))
	}
	return true
}

// powercfg reads the power saving of Wi-Fi, by the GUID that every scheme has for it.
func (r *reader) powercfg(c, _ command) bool {
	for i, w := range c.words {
		if strings.EqualFold(w, "12bbebe6-58d6-4636-95bb-3217ef867c1a") && i+1 < len(c.words) {
			r.add(Windows, "powercfg:wifi", c.words[i+1])
		}
	}
	return true
}

// nicClass is the key whose subkeys have the settings of one NIC each.
const nicClass = `HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}`

// nicLoop is a loop of a batch file over what reg finds below that key.
var nicLoop = pattern.New(`(?i)for\s+/f[^\n]*?(%%\w)\s+in\s*\([^\n]*reg(?:\.exe)?\s+query[^\n]*\{4d36e972-`)

// loopWithinLoop is a loop over what reg finds in a key that a loop around it has.
var loopWithinLoop = pattern.New(`(?i)for\s+/f[^\n]*?(%%\w)\s+in\s*\([^\n]*reg(?:\.exe)?\s+query\s+"?(%%\w)"?\s`)

// nicKeys returns the variables of such loops, in small letters.
func nicKeys(text string) map[string]bool {
	keys := map[string]bool{}
	for _, m := range nicLoop.FindAllStringSubmatch(text, -1) {
		keys[strings.ToLower(m[1])] = true
	}
	if len(keys) > 0 {
		for _, m := range loopWithinLoop.FindAllStringSubmatch(text, -1) {
			keys[strings.ToLower(m[1])] = keys[strings.ToLower(m[1])] || keys[strings.ToLower(m[2])]
		}
	}
	return keys
}

// service reads sc config NAME start= disabled, which ends a service of Windows for good.
func (r *reader) service(c, _ command) bool {
	w := strings.Fields(strings.ReplaceAll(strings.ToLower(strings.Join(c.words, " ")), "start=", "start= "))
	if len(w) != 5 || w[1] != "config" || w[3] != "start=" {
		return false
	}
	name := c.words[2]
	if w[2] == "sharedaccess" {
		name = "SharedAccess"
	}
	r.add(Windows, "service:"+name, w[4])
	return true
}

// mountedLine is a line of fstab: device, mount point, type, options. The device of NFS is
// HOST:PATH, which no other has (fstab(5), nfs(5)).
var mountedLine = pattern.New(`^\S+:\S+\s+(/\S*)\s+nfs[34]?\s+(\S+)`)

func (r *reader) mounted(text string) bool {
	m := mountedLine.FindStringSubmatch(text)
	if m != nil {
		r.nfsOptions(m[1], m[2])
	}
	return m != nil
}

func (r *reader) nfsOptions(point, options string) {
	// Of the many options only those are settings of the transfer; the others are about caching and
	// meaning.
	for _, o := range strings.Split(options, ",") {
		name, value, ok := strings.Cut(o, "=")
		switch {
		case ok && (name == "rsize" || name == "wsize" || name == "nconnect" || name == "proto"):
			r.add("", "nfs:"+point+"/"+name, value)
		case o == "udp" || o == "tcp":
			r.add("", "nfs:"+point+"/proto", o)
		}
	}
}

// initWrite reads `write FILE VALUE` of Android's init.rc (system/core/init/README.md).
func (r *reader) initWrite(c, _ command) bool {
	if len(c.words) < 3 || !strings.HasPrefix(c.words[1], "/proc/") && !strings.HasPrefix(c.words[1], "/sys/") {
		return false
	}
	return r.written(strings.Join(c.words[2:], " "), c.words[1])
}

// property reports properties of Android that concern the network, which are read by its services
// and not by the kernel. Nothing is known here about them.
func (r *reader) property(c, _ command) bool {
	for _, w := range c.words[1:] {
		if strings.HasPrefix(w, "net.") || strings.HasPrefix(w, "wifi.") || strings.HasPrefix(w, "ro.ril.") {
			r.unread()
		}
	}
	return true
}

// linkSet reads the words of `ip link set`. The interface comes first or behind dev, at any place:
// ip link set mtu 9000 dev eth0. A command that names a setting and none of an interface is not
// understood.
func (r *reader) linkSet(words []string) {
	device := ""
	if at := slices.Index(words, "dev"); at >= 0 && at+1 < len(words) {
		device, words = words[at+1], slices.Delete(slices.Clone(words), at, at+2)
	} else if len(words) > 0 {
		device, words = words[0], words[1:]
	}
	before := len(r.advice.Settings)
	r.interfaceWords(Linux, device, words)
	if len(r.advice.Settings) == before && linkSettings[device] {
		r.unread()
	}
}

// linkSettings are words for settings, which a command without an interface has in its place.
var linkSettings = setOf(`mtu txqueuelen qlen txqlen`)
