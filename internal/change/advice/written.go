package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// tee reads echo VALUE | tee FILE.
func (r *reader) tee(c, from command) bool {
	if name := from.name(); name != "echo" && name != "printf" {
		return true
	}
	target := c.words[len(c.words)-1]
	return len(c.words) < 2 || r.written(strings.Join(echoed(from), " "), target)
}

// echoed returns the words that echo prints. The format of printf counts as its text: printf '%s'
// "$x" sets a value that cannot be read here anyway.
func echoed(c command) []string {
	words := c.words[1:]
	for len(words) > 0 && (words[0] == "-n" || words[0] == "-e") {
		words = words[1:]
	}
	return words
}

// written interprets a value that goes into a file.
func (r *reader) written(value, file string) bool {
	if formatted.MatchString(value) || strings.Contains(file, "{}") {
		r.unread() // a program fills it in
		return true
	}
	if all := braces(file); len(all) > 1 { // /proc/sys/net/ipv{4,6}/conf/all/forwarding
		known := false
		for _, f := range all {
			known = r.written(value, f) || known
		}
		return known
	}
	// Places are recognised by their depth, as the kernel's trees are: /sys/class/net/IF/NAME, and
	// the queues two levels below.
	parts := strings.Split(strings.TrimPrefix(file, "/"), "/")
	switch {
	case strings.HasPrefix(file, "/proc/sys/"):
		return r.sysctl(file, value)
	case strings.HasPrefix(file, "/sys/class/net/") && len(parts) == 5: // sys class net eth0 mtu
		name := "link:" + parts[3] + "/" + parts[4]
		if parts[4] == "tx_queue_len" {
			name = "link:" + parts[3] + "/txqueuelen"
		}
		r.add(Linux, name, value)
	case strings.HasPrefix(file, "/sys/class/net/") && len(parts) == 7 && parts[4] == "queues":
		r.add(Linux, "queue:"+parts[3]+"/"+parts[5]+"/"+parts[6], value)
	// smp_affinity (a mask) and smp_affinity_list (a list) are two spellings of one setting, whose
	// value is the list.
	case strings.HasPrefix(file, "/proc/irq/") && len(parts) == 4:
		if parts[3] == "smp_affinity" {
			value = cpusOfMask(value)
		}
		r.add(Linux, "irq:"+parts[2]+"/affinity", value)
	case strings.HasPrefix(file, "/sys/module/") && len(parts) == 5 && parts[3] == "parameters":
		r.add(Linux, "module:"+parts[2]+"/"+parts[4], value)
	case queueFiles[parts[len(parts)-1]] != "" && strings.ContainsAny(file, "$*"):
		// Variables are not expanded, so the interface stays unknown. A loop over the queues: for q
		// in …/rx-*; do echo ff > $q/rps_cpus. The file shows the kind of queue.
		name := parts[len(parts)-1]
		r.add(Linux, "queue:*/"+queueFiles[name]+"-*/"+name, value)
	case strings.HasPrefix(file, "/sys/class/gpio/"): // pins
	case strings.HasPrefix(file, "/sys/") || strings.HasPrefix(file, "/proc/"):
		// Every file below these two directories is a setting: governors, huge pages, disk
		// schedulers.
		r.unread()
	case strings.HasPrefix(file, "$") && numbers.MatchString(value) && netNameOf(parts[len(parts)-1]) != "":
		r.unread() // echo 0 > $DIR/tcp_sack
	case driverFile.MatchString(file) && fileOfDriver.MatchString(value): // of Solaris
		m := fileOfDriver.FindStringSubmatch(value)
		r.add(Solaris, "driver:"+driverFile.FindStringSubmatch(file)[1]+"/"+m[1], m[2])
	default:
		// echo "net.ipv4.tcp_sack = 0" >> /etc/sysctl.conf: the text itself is the setting.
		// echo -e and printf write several lines at once.
		known := false
		if strings.Contains(file, "/network/interfaces") && r.of.device == "" {
			r.of.device = "*" // the head is written elsewhere
		}
		section := r.section
		defer func() { r.section = section }()
		for _, line := range strings.Split(value, `\n`) {
			line = strings.TrimSpace(line)
			known = r.sectionHead(line) || r.task(line) || r.interfaceLine(line) || r.etcSystem(line) || r.assignment(line) ||
				r.moduleOptions(line) || r.writtenRegistry(line) || known
			// A command that goes into a script: echo "ethtool -K \$2 tso off" >> FILE. What goes into
			// a log only reports it.
			if settingCommands.MatchString(line) && !strings.Contains(strings.ToLower(file), "log") {
				known = r.commands(splitCommands(line)) || known
			}
		}
		return known
	}
	return true
}

var (
	driverFile   = pattern.New(`^/(?:kernel/drv|etc/driver/drv)/(\w+)\.conf$`)
	fileOfDriver = pattern.New(`^(\w+)\s*=\s*(\d+)\s*;$`)
)

// formatted is a value that a program fills in: {}, %d.
var formatted = pattern.New(`^(?:\{\}|%[ds])$`)

// queueFiles are the files of a queue in /sys/class/net that are settings, with the kind of queue
// that has them. Source: Documentation/ABI/testing/sysfs-class-net-queues.
var queueFiles = table(`rps_cpus=rx rps_flow_cnt=rx xps_cpus=tx xps_rxqs=tx`)
