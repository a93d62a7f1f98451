package advice

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// reads is the form of a reader of one program: the command, and the command whose output it is fed
// with.
type reads func(r *reader, c, from command) bool

// The readers of programs answer true when the command is of their form, also when it sets nothing:
// a text full of `ethtool -k` and `sysctl -p` is understood, and none of it is advice. What an
// option means that is not read here is left to the program; a reader that guessed would put words
// into the text's mouth.

// commandTable finds the reader of a program by its name; nil when its arguments mean nothing to
// us.
//
// It is a switch and no map, because readers call each other (bash -c, sudo, echo into a file that
// is a setting) and a map of them would refer to itself while it is made.
func commandTable(name string) reads {
	switch name {
	case "sysctl", "sysrc":
		return (*reader).sysctlCommand
	case "ethtool":
		return func(r *reader, c, _ command) bool { return r.ethtool(c) }
	case "ip":
		return (*reader).ip
	case "ifconfig":
		return (*reader).ifconfig
	case "route":
		return (*reader).route
	case "tc":
		return (*reader).tc
	case "mii-tool":
		return (*reader).miiTool
	case "modprobe", "insmod":
		return (*reader).modprobe
	case "mount", "mount_nfs":
		return (*reader).mount
	case "echo", "printf":
		return (*reader).echo
	case "tee":
		return (*reader).tee
	case "ndd":
		return (*reader).ndd
	case "ipadm":
		return (*reader).ipadm
	case "svccfg":
		return (*reader).svccfg
	case "routeadm":
		return (*reader).routeadm
	case "dladm":
		return (*reader).dladm
	case "netsh":
		return (*reader).netsh
	case "sc":
		return (*reader).service
	case "reg", "%reg%":
		return (*reader).reg
	case "sp": // the alias of PowerShell
		return func(r *reader, c, _ command) bool {
			return r.cmdlet(command{words: append([]string{"Set-ItemProperty"}, c.words[1:]...)})
		}
	case "cd", "set-location", "push-location", "pushd", "sl":
		return (*reader).location
	case "powercfg":
		return (*reader).powercfg
	case "kldload":
		return (*reader).kldload
	case "sh", "bash", "dash", "ksh", "zsh", "su":
		return (*reader).shell
	case "foreach-object", "foreach", "%", "try", "ssh", "plink", "rsh", "pdsh", "clush", "powershell", "pwsh", "cmd",
		"chroot", "nsenter", "env", "timeout", "nice", "ionice", "start", "call", "busybox", "toybox", "xargs", "adb":
		return (*reader).wrapped
	case "nmcli":
		return (*reader).nmcli
	case "write":
		return (*reader).initWrite
	case "setprop", "resetprop":
		return (*reader).property
	case "grep", "egrep", "fgrep", "cat", "man":
		return func(*reader, command, command) bool { return true } // they read
	}
	if _, ok := cmdlets[name]; ok {
		return func(r *reader, c, from command) bool { return r.cmdlet(c.selectedBy(from)) }
	}
	if _, _, ok := adapterSwitch(name); ok {
		return func(r *reader, c, _ command) bool { return r.cmdlet(c) }
	}
	if notTuning.MatchString(name) {
		return func(*reader, command, command) bool { return true }
	}
	if unreadCmdlet.MatchString(name) {
		return func(r *reader, _, _ command) bool { r.unread(); return true }
	}
	return nil
}

// shell reads the command in `bash -c '…'`, which is how one sudo is made to cover a redirection as
// well.
func (r *reader) shell(c, _ command) bool {
	for i, w := range c.words {
		// -c comes alone or behind other letters (-lc); what follows is one word because it was
		// quoted.
		if strings.HasPrefix(w, "-") && strings.HasSuffix(w, "c") && i+1 < len(c.words) {
			return r.commands(splitCommands(r.script.inner(c.words[i+1])))
		}
	}
	return true
}

// wrapped reads the command that another program runs, here or on another host: ssh HOST 'sysctl -w
// …', powershell -Command "…", nsenter -t 1 -n sysctl …. What stands before it are options and
// hosts.
func (r *reader) wrapped(c, _ command) bool {
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		if inner := splitCommands(w); len(inner) > 0 && strings.ContainsAny(w, " \t") {
			if slices.ContainsFunc(inner, func(c command) bool { return commandTable(c.unwrap().name()) != nil }) {
				return r.commands(inner)
			}
			continue
		}
		rest := command{words: c.words[i:], target: c.target}.unwrap()
		if commandTable(rest.name()) != nil {
			return r.command(rest, command{})
		}
	}
	if r.depth < 2 && !r.quoting {
		r.quoted(r.line.text)
		return true
	}
	// The strings of the line are being read already.
	for _, m := range cmdletWithin.FindAllString(strings.Join(c.words[1:], " "), -1) {
		r.commands(splitCommands(m))
	}
	return true
}

// kldload reads the modules that FreeBSD loads now; loader.conf has the same as NAME_load.
func (r *reader) kldload(c, _ command) bool {
	for _, w := range c.words[1:] {
		if !strings.HasPrefix(w, "-") {
			r.add(FreeBSD, "kldload:"+strings.TrimSuffix(w[strings.LastIndex(w, "/")+1:], ".ko"), "YES")
		}
	}
	return true
}

// pairs calls f for each name and value in words that alternate.
func pairs(words []string, f func(name, value string)) {
	for i := 0; i+1 < len(words); i += 2 {
		f(words[i], words[i+1])
	}
}

// sysctlCommand reads sysctl(8) of Linux and FreeBSD and sysrc(8): every word with an equals sign
// is a setting.
func (r *reader) sysctlCommand(c, _ command) bool {
	// Puppet's and Chef's resource of this name is no command: sysctl { 'NAME': value => 1 }.
	// The head of a block of Nix is neither: sysctl = {.
	if len(c.words) > 1 && (strings.HasPrefix(c.words[1], "{") || c.words[1] == "=" || c.words[len(c.words)-1] == "do") {
		return false
	}
	// sysctl -p FILE and --system read files that are not available here; their words have no
	// equals sign. The same holds for -f FILE (FreeBSD).
	if asksSysctl.MatchString(strings.Join(c.words[1:], " ")) {
		r.answerAt = r.line.number + 1
	}
	for _, w := range withoutBlanks(withNumbers(c.words[1:])) {
		// Both programs accept settings anywhere between their options, and neither system needs -w
		// any longer.
		name, value, ok := strings.Cut(w, "=")
		if !ok || strings.HasPrefix(w, "--") {
			continue
		}
		if device, isInterface := strings.CutPrefix(name, "ifconfig_"); isInterface {
			r.interfaceWords(FreeBSD, device, strings.Fields(value))
			continue
		}
		if c.name() == "sysrc" && (r.rcVariable(name, value) || strings.HasSuffix(name, "_load") && r.assignment(w)) {
			continue
		}
		// A name of no tree that we know stays a setting: its author meant one, and the judgement
		// reports that it is unknown.
		if !r.sysctl(name, value) && !(leftOpen.MatchString(name) && isVariable(value)) {
			r.add("", "sysctl:"+name, value)
		}
	}
	return true
}

// asksSysctl are the words of a command that shows values.
var asksSysctl = pattern.New(`^(?:-[aAnNed]+\b|[a-z]\w*(?:\.[\w*/-]+)+)[^=]*$`)

// answer is a line of what sysctl(8) prints.
var answer = pattern.New(`^(?:>\s+)?` + namePattern + `(?: = |: )[^"']*$`)

// leftOpen is a name that a program fills in; the table that it goes over is read where it stands.
var leftOpen = pattern.New(`^(?:%s|\$?\{[\w.]*\})$`)

// withNumbers joins the numbers of a value that pages write without quotes: NAME=1024 65535. The
// program refuses that; the author means the setting.
func withNumbers(words []string) []string {
	var out []string
	for i, w := range words {
		before := words[max(0, i-1)]
		before = before[strings.IndexByte(before, '=')+1:]
		if n := len(out); n > 1 && numbers.MatchString(w) && numbers.MatchString(before) {
			out[n-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// withoutBlanks joins a name, a sign and a value that pages write with blanks: NAME= VALUE, NAME =
// VALUE. The programs refuse that; the author means the setting.
func withoutBlanks(words []string) []string {
	var out []string
	for i, w := range words {
		switch n := len(out); {
		case n > 0 && w == "=":
			out[n-1] += w
		case n > 0 && strings.HasPrefix(w, "=") && !strings.Contains(out[n-1], "="):
			out[n-1] += w
		case n > 0 && i > 0 && strings.HasSuffix(out[n-1], "=") && !strings.Contains(w, "="):
			out[n-1] += w
		default:
			out = append(out, w)
		}
	}
	return out
}

// ip reads `ip link set` and `ip route add|change|replace|append`.
func (r *reader) ip(c, _ command) bool {
	words := c.words[1:]
	// Options of ip(8) come before the object: -4, -6, -batch.
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	if len(words) < 2 {
		return true
	}
	// ip(8) takes every unambiguous beginning of an object: ip l set, ip ro add.
	switch {
	// A command in a namespace: ip netns exec NAME sysctl ….
	case words[0] == "netns" && words[1] == "exec" && len(words) > 3:
		return r.wrapped(command{words: words[2:], target: c.target}, command{})
	case strings.HasPrefix("link", words[0]) && words[1] == "set":
		r.linkSet(words[2:])
	case strings.HasPrefix("route", words[0]) && (words[1] == "add" || words[1] == "change" || words[1] == "replace" ||
		words[1] == "append"):
		r.routeWords(words[2:])
	}
	return true
}

// routeMetrics are the metrics of a route that are settings of ours, in the words of ip-route(8)
// and route(8).
//
// window, advmss and mtu are bytes, initcwnd and initrwnd packets, rto_min a time with its unit,
// quickack a switch. The mss of route(8) is the segment size announced to the far end: the kernel's
// RTAX_ADVMSS.
var routeMetrics = table(`window=window initcwnd=initcwnd initrwnd=initrwnd mtu=mtu advmss=advmss mss=advmss quickack=quickack
	rto_min=rto_min congctl=congctl fastopen_no_cookie=fastopen_no_cookie`)

// routeWords reads a destination and the metrics behind it.
func (r *reader) routeWords(words []string) {
	for len(words) > 0 && (strings.HasPrefix(words[0], "-") || words[0] == "to" || words[0] == "unicast") {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	// Instructions leave the values to the reader: route add <net> window <bytes>.
	for i, w := range words {
		words[i] = strings.Trim(w, "<>")
	}
	destination := words[0]
	if at := slices.Index(words, "netmask"); at > 0 && at+1 < len(words) {
		destination = withMask(destination, words[at+1])
	}
	// Words between the metrics (via, dev, proto, metric) select the route; their values cannot be
	// mistaken for names of metrics.
	for i := 1; i+1 < len(words); i++ {
		metric, ok := routeMetrics[words[i]]
		if !ok {
			continue
		}
		value := words[i+1]
		// "mtu lock 1400" forbids path MTU discovery to change it.
		if value == "lock" && i+2 < len(words) {
			value = words[i+2]
		}
		if metric == "rto_min" {
			value = milliseconds(value, "ms")
		}
		r.add(Linux, "route:"+destination+"/"+metric, value)
	}
}

// milliseconds returns a time of ip-route(8) or systemd.time(7) as the kernel counts rto_min; any
// other text stays unchanged.
func milliseconds(value, unit string) string {
	m := timeOfRoute.FindStringSubmatch(value)
	if m == nil {
		return value
	}
	switch cmp.Or(m[2], unit) {
	case "s":
		return m[1] + "000"
	case "us", "usec":
		return strings.TrimSuffix(m[1], "000")
	}
	return m[1]
}

var timeOfRoute = pattern.New(`^(\d+)\s*(s|ms|msec|us|usec)?$`)

// withMask returns an address and a mask as a prefix, the form in which ip-route(8) names routes;
// any other text stays unchanged.
func withMask(address, mask string) string {
	a, err := netip.ParseAddr(address)
	m, maskErr := netip.ParseAddr(mask)
	if err != nil || maskErr != nil || !a.Is4() || !m.Is4() {
		return address
	}
	b := m.As4()
	ones, bits := net.IPv4Mask(b[0], b[1], b[2], b[3]).Size()
	if bits == 0 {
		return address // the ones of the mask are not together
	}
	return netip.PrefixFrom(a, ones).String()
}

// route reads route(8) of net-tools.
func (r *reader) route(c, _ command) bool {
	words := c.words[1:]
	for len(words) > 0 && (strings.HasPrefix(words[0], "-") || words[0] == "add") {
		words = words[1:]
	}
	r.routeWords(words)
	return true
}

// ifconfig reads ifconfig(8) of every system.
func (r *reader) ifconfig(c, _ command) bool {
	if len(c.words) > 2 {
		o := OS("")
		if strings.HasPrefix(c.words[1], "e1000g") {
			o = Solaris // the name of a driver that no other system has
		}
		r.interfaceWords(o, c.words[1], c.words[2:])
	}
	return true
}

// interfaceFlags are words of FreeBSD's ifconfig(8) that turn something on, or off with a leading
// dash.
var interfaceFlags = setOf(`polling tso tso4 tso6 lro rxcsum txcsum rxcsum6 txcsum6`)

// packetSizes are the words of ip-link(8) for the sizes up to which packets are merged and cut;
// they are names of knobs as well.
var packetSizes = setOf(`gso_max_size gro_max_size gso_ipv4_max_size gro_ipv4_max_size`)

// interfaceWords reads the words after the name of an interface in ifconfig, ip link set and
// rc.conf.
func (r *reader) interfaceWords(o OS, device string, words []string) {
	for i, w := range words {
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		// FreeBSD's flags are single words with a leading dash for off; Linux and Solaris use names
		// followed by a value (ifconfig(8), ip-link(8)).
		flag := strings.TrimPrefix(w, "-")
		switch {
		case w == "-": // the remark of a page follows
			return
		case w == "mtu" && value != "":
			r.add(o, "link:"+device+"/mtu", value)
		case (w == "txqueuelen" || w == "qlen" || w == "txqlen") && value != "":
			r.add(Linux, "link:"+device+"/txqueuelen", value)
		case packetSizes[w] && value != "":
			r.add(Linux, "link:"+device+"/"+w, value)
		case interfaceFlags[flag]:
			state := "on"
			if flag != w {
				state = "off"
			}
			r.add(FreeBSD, "ifconfig:"+device+"/"+flag, state)
		case w == "media" && value != "":
			r.add(FreeBSD, "ifconfig:"+device+"/media", value)
		}
	}
}

// tc reads the kind of a root queueing discipline.
//
// Classes and filters are programs, not settings; parameters of a discipline have a unit after the
// number (10gbit, 5ms, 300p) and mean something only together. Neither is judged; pages advise the
// kind.
func (r *reader) tc(c, _ command) bool {
	words := c.words[1:]
	if len(words) < 4 || words[0] != "qdisc" || words[1] == "del" || words[1] == "show" {
		return true
	}
	// tc wants the place first and the kind behind it; everything behind the kind belongs to the
	// kind.
	device, root := "", false
	for i := 2; i < len(words); i++ {
		switch words[i] {
		case "dev":
			if i+1 < len(words) {
				i++
				device = words[i]
			}
		case "handle":
			i++
		case "parent":
			i++
			root = root || i < len(words) && words[i] == "root"
		case "root":
			root = true
		default:
			if device != "" && root {
				r.add(Linux, "qdisc:"+device+"/root", words[i])
			}
			return true
		}
	}
	return true
}

// miiTool reads mii-tool -F and -A, which name a medium like 100baseTx-FD and then the interface.
func (r *reader) miiTool(c, _ command) bool {
	// The medium may be attached or not, and the interface is the last word. The program knows
	// nothing above 100 Mb/s: it sets the registers of clause 22, where gigabit has no place
	// (mii-tool(8)).
	for i, w := range c.words {
		name, medium, attached := strings.Cut(w, "=")
		forced := name == "-F" || name == "--force"
		if !forced || len(c.words) < 3 || !attached && i+1 >= len(c.words) {
			continue
		}
		if !attached {
			medium = c.words[i+1]
		}
		speed := medium[:len(medium)-len(strings.TrimLeft(medium, "0123456789"))]
		duplex := "half"
		if strings.HasSuffix(strings.ToUpper(medium), "-FD") {
			duplex = "full"
		}
		r.add(Linux, "ethtool:"+c.words[len(c.words)-1]+"/link.forced", speed+"/"+duplex)
	}
	return true
}

// modprobe reads parameters on the command line of modprobe and insmod. Options come before the
// module; a module alone, as on most lines, sets nothing.
func (r *reader) modprobe(c, _ command) bool {
	words := c.words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	if len(words) > 1 {
		r.moduleParameters(words[0], words[1:])
	}
	return true
}

// mount reads the options of an NFS mount. Which file system it is need not be said (-t nfs):
// rsize, wsize, nconnect and proto are options of NFS alone, and what other options there are is
// left out.
func (r *reader) mount(c, _ command) bool {
	for i, w := range c.words {
		if w == "-o" && i+1 < len(c.words) {
			r.nfsOptions(c.words[len(c.words)-1], c.words[i+1])
		}
		if w == "-t" && i+1 < len(c.words) && c.words[i+1] == "ramfs" {
			r.add(Linux, "mount:ramfs", c.words[len(c.words)-1])
		}
	}
	return true
}

// echo reads a value written to a file below /proc or /sys, and a line appended to a file of
// settings.
func (r *reader) echo(c, _ command) bool {
	switch text := strings.Join(echoed(c), " "); {
	case c.target != "":
		return r.written(text, c.target)
	case r.grouped, len(c.words) > 2 && c.words[1] == "RUN": // of a Dockerfile
		return r.written(text, "")
	case r.prints && printedSetting.MatchString("echo "+text):
		return r.written(text, "")
	case r.writtenRegistry(text):
	case strings.Count(r.line.text, `"`)%2 == 1: // the first line of a text that it writes
		r.assignment(text)
	}
	return true
}

// printedSetting is a line of a script that shows a file of settings to its reader.
var printedSetting = pattern.New(`(?m)^\s*echo\s+["']?` + namePattern + `\s?=\s?["']?-?\d[\d ]*["']?\s*$`)

// groupIntoFile is the end of a group of commands whose output goes into a file: ) > FILE, or
// } | sudo tee FILE.
var groupIntoFile = pattern.New(`(?m)^\s*[)}]\s*(>|\|\s*(sudo )?tee\b)`)

// cpusOfMask returns the CPUs of a mask as a list, 0-3 for f, and a text that is no mask unchanged.
func cpusOfMask(mask string) string {
	const most = 8192 / 4 // letters, for the most CPUs that a kernel can have
	digits := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(mask), "0x"), ",", "")
	if digits == "" || len(digits) > most {
		return mask
	}
	var list []string
	first := -1 // of the present range
	for cpu := 0; cpu <= 4*len(digits); cpu++ {
		set := false
		if cpu < 4*len(digits) {
			digit, err := strconv.ParseUint(digits[len(digits)-1-cpu/4:len(digits)-cpu/4], 16, 8)
			if err != nil {
				return mask
			}
			set = digit>>(cpu%4)&1 == 1
		}
		switch {
		case set && first < 0:
			first = cpu
		case !set && first == cpu-1 && first >= 0:
			list, first = append(list, strconv.Itoa(first)), -1
		case !set && first >= 0:
			list, first = append(list, fmt.Sprintf("%d-%d", first, cpu-1)), -1
		}
	}
	if len(list) == 0 {
		return mask
	}
	return strings.Join(list, ",")
}

// number returns a number of a Windows command line, decimal or 0x, in decimal, as the facts have
// it. Other values (a string, a variable) stay unchanged.
func number(s string) string {
	if s == "-1" || s == "u32::MAX" { // of 32 bits
		return "4294967295"
	}
	digits, base := s, 10 // of reg add, zeros in front do not make octal digits
	if rest, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		digits, base = rest, 16
	}
	if n, err := strconv.ParseUint(digits, base, 64); err == nil {
		return strconv.FormatUint(n, 10)
	}
	return s
}
