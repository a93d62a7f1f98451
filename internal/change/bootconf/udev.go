package bootconf

import (
	"io/fs"
	"path"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/knob"
)

// ruleDirs hold udev rules (udev(7)).
var ruleDirs = []string{"etc/udev/rules.d", "run/udev/rules.d", "usr/local/lib/udev/rules.d", "usr/lib/udev/rules.d",
	"lib/udev/rules.d"}

// ruleToken is one part of a rule: ATTR{tx_queue_len}="2000".
var ruleToken = pattern.New(`([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*"([^"]*)"`)

// fileAttributes are the files below the directory of an interface that are knobs under another
// name.
var fileAttributes = map[string]string{"tx_queue_len": "txqueuelen", "mtu": "mtu",
	"gro_flush_timeout":    "gro_flush_timeout",
	"napi_defer_hard_irqs": "napi_defer_hard_irqs", "threaded": "threaded"}

// rules reads what udev rules write to sysfs, and the commands of ethtool and ip that they run.
func (c *Config) rules(root fs.FS, devices []Device) {
	for _, file := range named(root, ruleDirs, ".rules") {
		lines(root, file, func(n int, text string) {
			tokens := ruleToken.FindAllStringSubmatch(text, -1)
			switch subsystem := rulePart(tokens, "SUBSYSTEM"); subsystem {
			case "net":
				for _, d := range devices {
					if d.ruleMatches(tokens) {
						c.netRule(d, tokens, file, n)
					}
				}
			case "block", "pci", "cpu":
				c.hostRule(subsystem, tokens, file, n)
			}
		})
	}
}

// rulePart returns the value of the first comparison with a key.
func rulePart(tokens [][]string, key string) string {
	for _, t := range tokens {
		if t[1] == key && t[3] == "==" {
			return t[4]
		}
	}
	return ""
}

// ruleMatches compares an interface with a rule. An unknown condition counts as a match: better to
// report one line too many than one too few.
func (d Device) ruleMatches(tokens [][]string) bool {
	for _, t := range tokens {
		known := ""
		switch {
		case t[1] == "NAME" || t[1] == "KERNEL" && d.Permanent == "" || t[1] == "ENV" && t[2] == "INTERFACE":
			known = d.Name
		case t[1] == "ATTR" && t[2] == "address":
			known = d.Address
		case t[1] == "DRIVERS" || t[1] == "ENV" && t[2] == "ID_NET_DRIVER":
			known = d.Driver
		case t[1] == "ENV" && t[2] == "ID_PATH":
			known = d.Path
		}
		if known == "" || t[3] != "==" && t[3] != "!=" {
			continue
		}
		fits := false
		for _, pattern := range strings.Split(t[4], "|") {
			ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(known))
			fits = fits || err == nil && ok
		}
		if fits != (t[3] == "==") {
			return false
		}
	}
	return true
}

// netRule records what a rule sets on an interface.
func (c *Config) netRule(d Device, tokens [][]string, file string, n int) {
	for _, t := range tokens {
		if t[3] == "==" || t[3] == "!=" {
			continue
		}
		switch t[1] {
		case "RUN":
			for id, v := range command(t[4], d) {
				c.set(id, v, file, n, "udev")
			}
		case "ATTR":
			if name, ok := fileAttributes[t[2]]; ok {
				c.set(knob.ID("link:"+d.Name+"/"+name), knob.Value(t[4]), file, n, "udev")
				continue
			}
			rest, queue := strings.CutPrefix(t[2], "queues/")
			rest = strings.Replace(rest, "/byte_queue_limits/", "/bql_", 1)
			if id, err := knob.ParseID("queue:" + d.Name + "/" + rest); queue && err == nil {
				c.set(id, knob.Value(t[4]), file, n, "udev")
			}
		}
	}
}

// hostRule records what a rule sets on a disk, a PCI device or a CPU that it names.
func (c *Config) hostRule(subsystem string, tokens [][]string, file string, n int) {
	kernel := rulePart(tokens, "KERNEL")
	if kernel == "" || strings.ContainsAny(kernel, "*?[|") {
		return
	}
	for _, t := range tokens {
		if t[1] != "ATTR" || t[3] != "=" {
			continue
		}
		prefix := map[string]string{"block": "queue/", "pci": "link/", "cpu": "cpufreq/"}[subsystem]
		attribute, ok := strings.CutPrefix(t[2], prefix)
		if own, of := strings.CutPrefix(attribute, "iosched/"); of {
			attribute = knob.OwnParameter + own
		}
		if t[2] == "power/pm_qos_resume_latency_us" {
			attribute, ok = "resume_latency", true
		}
		if id, err := knob.ParseID(subsystem + ":" + strings.TrimPrefix(kernel, "cpu") + "/" + attribute); ok &&
			err == nil {
			c.set(id, knob.Value(t[4]), file, n, "udev")
		}
	}
}
