package export

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// The ways to reach a setting. Those of the engine are functions of engine.sh: get_WAY and put_WAY.
const (
	waySysctl  = "sysctl"  // PATH below /proc/sys
	wayFile    = "file"    // PATH of sysfs
	wayMask    = "mask"    // the same, a CPU mask whose leading zeros do not count
	wayFlag    = "flag"    // the same, Y and N for 1 and 0
	wayRing    = "ring"    // LINK rx|tx
	wayChannel = "channel" // LINK rx|tx|combined
	wayMoment  = "moment"  // LINK PARAMETER of interrupt moderation
	wayPause   = "pause"   // LINK rx|tx|autoneg
	wayEEE     = "eee"     // LINK
	wayFeature = "feature" // LINK NAME NAME-AS-SHOWN
	wayPrivate = "private" // LINK FLAG
	wayTunable = "tunable" // LINK NAME
	wayLink    = "link"    // LINK WORD-TO-SET WORD-AS-SHOWN
	wayRoute   = "route"   // DESTINATION METRIC FAMILY
	wayQdisc   = "qdisc"   // LINK
	wayOption  = "option"  // LINK KIND NAME, of a queueing discipline
	wayModule  = "module"  // MODULE OPTION; not in the engine: it takes effect when the module is loaded
	wayKernel  = "kernel"  // MODULE OPTION of a built-in module; not in the engine: the kernel's command line
)

// arg is one argument of a way: a text that may contain the name of an interface.
type arg struct {
	before, link, after string
	variable            string // replaces link; see draft.variable
}

// plain returns the argument as it was on the origin.
func (a arg) plain() string { return a.before + a.link + a.after }

// way is how to reach a setting.
type way struct {
	kind string
	args []arg
}

// ofEngine reports whether the engine can use it while the host runs.
func (w way) ofEngine() bool { return w.kind != wayModule && w.kind != wayKernel }

// bound reports whether it depends on an interface.
func (w way) bound() bool {
	return slices.ContainsFunc(w.args, func(a arg) bool { return a.link != "" })
}

// misread reports whether one of the tools would treat a name or the value as an option.
func (w way) misread(c Change) bool {
	switch w.kind {
	case waySysctl, wayFile, wayMask, wayFlag, wayModule, wayKernel:
		return false
	}
	dash := func(a arg) bool {
		return strings.HasPrefix(a.plain(), "-") && a.before != family4 && a.before != family6
	}
	return strings.HasPrefix(string(c.To), "-") || slices.ContainsFunc(w.args, dash)
}

// The options of ip(8) that select routes.
const (
	family4 = "-4"
	family6 = "-6"
)

func text(s string) arg   { return arg{before: s} }
func onLink(s string) arg { return arg{link: s} }

// sysfsLink returns a file in the directory of an interface.
func sysfsLink(link, file string) arg {
	return arg{before: "/sys/class/net/", link: link, after: "/" + file}
}

// wayTo returns the way to a knob, or the reason why another host cannot apply it.
func wayTo(id knob.ID, to knob.Value, d knob.Definition) (way, *LeftOut) {
	subject, attribute := split(id)
	switch id.Kind() {
	case knob.KindSysctl:
		return way{waySysctl, []arg{sysctlArg(id)}}, nil
	case knob.KindLink:
		return linkWay(subject, attribute)
	case knob.KindEthtool:
		return ethtoolWay(subject, attribute, to)
	case knob.KindQueue:
		return queueWay(subject, attribute)
	case knob.KindRoute:
		return routeWay(subject, attribute, to)
	case knob.KindQdisc:
		return qdiscWay(subject, attribute)
	case knob.KindModule:
		return moduleWay(subject, attribute, to, d)
	case knob.KindCPU:
		return cpuWay(subject, attribute)
	case knob.KindBlock:
		if plainName(subject) {
			return way{wayFile, []arg{text("/sys/block/" + subject + "/" + knob.DiskFile(attribute))}}, nil
		}
	case knob.KindIRQ:
		return way{}, leave("interrupts have other numbers on every host and after every start", "")
	case knob.KindPCI:
		return way{}, leave("a PCI address names a slot of one machine", "")
	case knob.KindFirewall:
		return way{}, leave("it is the rules of one host", "linerate firewall optimise on the other host")
	case knob.KindNamed, knob.KindUnbound, knob.KindKresd:
		return way{}, leave("it is an option of a server's own configuration", attribute+" "+string(to)+" in "+subject)
	case knob.KindNFS:
		return way{}, leave("it is an option of a mount", "mount option "+attribute+"="+string(to)+" in /etc/fstab")
	}
	return way{}, leave("no format has a form for it", "")
}

func leave(why, byHand string) *LeftOut { return &LeftOut{Why: why, ByHand: byHand} }

// split splits an ID at its last separator, as package knob does.
func split(id knob.ID) (subject, attribute string) {
	_, rest, _ := strings.Cut(string(id), ":")
	at := strings.LastIndex(rest, "/")
	if at < 0 {
		return rest, ""
	}
	return rest[:at], rest[at+1:]
}

// sysctlArg returns the path below /proc/sys. The element after conf or neigh is an interface,
// unless it is one of the two that mean all.
func sysctlArg(id knob.ID) arg {
	_, name, _ := strings.Cut(string(id), ":")
	path := strings.Split(name, ".")
	for i, element := range path {
		path[i] = strings.ReplaceAll(element, "/", ".")
	}
	for i := 2; i+2 < len(path); i++ {
		if (path[i] == "conf" || path[i] == "neigh") && path[i+1] != "all" && path[i+1] != "default" {
			return arg{
				before: strings.Join(path[:i+1], "/") + "/", link: path[i+1],
				after: "/" + strings.Join(path[i+2:], "/"),
			}
		}
	}
	return text(strings.Join(path, "/"))
}

func linkWay(link, attribute string) (way, *LeftOut) {
	switch attribute {
	case "napi_defer_hard_irqs", "gro_flush_timeout", "threaded":
		return way{wayFile, []arg{sysfsLink(link, attribute)}}, nil
	case "txqueuelen":
		return way{wayLink, []arg{onLink(link), text(attribute), text("qlen")}}, nil
	case "mtu", "gso_max_size", "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size":
		return way{wayLink, []arg{onLink(link), text(attribute), text(attribute)}}, nil
	}
	return way{}, leave("no format has a form for it", "")
}

// shownFeatures are the names in `ethtool -k` of features that it does not show under the kernel's
// names.
var shownFeatures = map[string]string{
	"rx-checksum": "rx-checksumming", "tx-generic-segmentation": "generic-segmentation-offload",
	"rx-gro": "generic-receive-offload",
	"rx-lro": "large-receive-offload", "tx-vlan-hw-insert": "tx-vlan-offload", "rx-vlan-hw-parse": "rx-vlan-offload",
	"rx-ntuple-filter": "ntuple-filters", "rx-hashing": "receive-hashing",
}

func ethtoolWay(link, attribute string, to knob.Value) (way, *LeftOut) {
	group, key, _ := strings.Cut(attribute, ".")
	two := func(kind string) (way, *LeftOut) { return way{kind, []arg{onLink(link), text(key)}}, nil }
	switch {
	case group == "ring" && (key == "rx" || key == "tx"):
		return two(wayRing)
	case group == "channels":
		return two(wayChannel)
	case group == "coalesce" && !strings.HasPrefix(key, "tx-aggr-"):
		return two(wayMoment)
	case group == "pause":
		return two(wayPause)
	case group == "flag":
		return two(wayPrivate)
	case group == "tunable":
		return two(wayTunable)
	case attribute == "eee":
		return way{wayEEE, []arg{onLink(link)}}, nil
	case group == "feature":
		shown, renamed := shownFeatures[key]
		if !renamed {
			shown = key
		}
		return way{wayFeature, []arg{onLink(link), text(key), text(shown)}}, nil
	case group == "rss" || group == "rxhash":
		return way{}, leave("it depends on the queues that the card of one host has", "")
	case group == "ring":
		return way{}, leave("ethtool prints it differently in every version", "ethtool -G "+link+" "+key+" "+string(to))
	case attribute == "fec":
		return way{}, leave("it is agreed with the other end of the cable",
			"ethtool --set-fec "+link+" encoding "+strings.ReplaceAll(string(to), ",", " "))
	case attribute == "link.mode":
		return way{}, leave("it is agreed with the other end of the cable", "")
	}
	return way{}, leave("no format has a form for it", "")
}

func queueWay(subject, attribute string) (way, *LeftOut) {
	link, queue, _ := strings.Cut(subject, "/")
	if !plainName(queue) {
		return way{}, leave("no format has a form for it", "")
	}
	kind, file := wayFile, attribute
	switch attribute {
	case "rps_cpus", "xps_cpus", "xps_rxqs":
		kind = wayMask
	case "bql_limit_max", "bql_limit_min":
		file = "byte_queue_limits/" + strings.TrimPrefix(attribute, "bql_")
	}
	return way{kind, []arg{sysfsLink(link, "queues/"+queue+"/"+file)}}, nil
}

func routeWay(destination, attribute string, to knob.Value) (way, *LeftOut) {
	family := family4
	if strings.Contains(destination, ":") {
		family = family6
	}
	switch attribute {
	case "window", "initcwnd", "initrwnd", "mtu", "advmss", "quickack", "congctl":
		return way{wayRoute, []arg{text(destination), text(attribute), text(family)}}, nil
	}
	return way{}, leave("ip route prints it in a form that it does not take", "ip route change ROUTE "+attribute+
		" "+string(to))
}

// countedOptions are the parameters of disciplines that tc prints in its input form, except for a
// letter after the number.
var countedOptions = map[string][]string{
	"fq": {"limit", "flow_limit"}, "fq_codel": {"limit", "quantum", "drop_batch"}, "pfifo": {"limit"},
}

func qdiscWay(link, attribute string) (way, *LeftOut) {
	if attribute == "root" {
		return way{wayQdisc, []arg{onLink(link)}}, nil
	}
	kind, name, _ := strings.Cut(attribute, ".")
	if slices.Contains(countedOptions[kind], name) {
		return way{wayOption, []arg{onLink(link), text(kind), text(name)}}, nil
	}
	return way{}, leave("tc prints it in other units than it takes", "tc qdisc change dev "+link+" root "+kind+" "+
		name+" VALUE")
}

// builtIn are modules that are always part of the kernel, so that no file of modprobe.d applies to
// them.
var builtIn = []string{"pcie_aspm", "intel_idle", "processor", "cpufreq"}

func moduleWay(module, parameter string, to knob.Value, d knob.Definition) (way, *LeftOut) {
	if !plainName(module) || !plainName(parameter) || !plainOption(string(to)) {
		return way{}, leave("modprobe.d has no way to quote it", "")
	}
	if to == knob.Absent {
		return way{}, leave("the module is loaded without it, which is the default", "")
	}
	names := []arg{text(module), text(parameter)}
	switch {
	case d.Disturbance == knob.DisturbsHost && slices.Contains(builtIn, module):
		return way{wayKernel, names}, nil
	case d.Disturbance == knob.DisturbsHost:
		return way{wayModule, names}, nil
	case d.Form == knob.FormBool:
		return way{wayFlag, []arg{text("/sys/module/" + module + "/parameters/" + parameter)}}, nil
	}
	return way{wayFile, []arg{text("/sys/module/" + module + "/parameters/" + parameter)}}, nil
}

func cpuWay(cpu, attribute string) (way, *LeftOut) {
	directory := "/sys/devices/system/cpu/cpu" + cpu
	if strings.Trim(cpu, "0123456789") != "" {
		return way{}, leave("it is held by a program, and not written", "")
	}
	switch attribute {
	case "scaling_governor", "energy_performance_preference":
		return way{wayFile, []arg{text(directory + "/cpufreq/" + attribute)}}, nil
	case "resume_latency":
		return way{wayFile, []arg{text(directory + "/power/pm_qos_resume_latency_us")}}, nil
	}
	return way{}, leave("no format has a form for it", "")
}

// plainName reports whether one element of a path needs no quotes in any language.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && only(s, "_.-+")
}

// plainOption reports whether modprobe.d and a kernel's command line accept a value without quotes.
func plainOption(s string) bool { return s != "" && only(s, "_.-+,:/") }

// only reports whether a text consists of ASCII letters, digits and the given characters.
func only(s, others string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(others, r)
	})
}
