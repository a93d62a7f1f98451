package advice

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Forms that give one part of a setting on lines above: the tree of a hash of Ruby, the keyword of
// a resource of PowerShell's DSC, and the file that a program has opened.

// nest is what such lines have said.
type nest struct {
	tree    []string // keys of the open hashes, ['sysctl']['net'] for each
	keyword string   // of the resource
	noun    string   // of the resource, Rss
	file    string   // of the kernel that a program has opened
	// the line where it did so
	fileLine int
	port     string // the first end of a range of ports
}

var (
	// treeHead opens a hash below the tree of sysctls: default['sysctl']['net']['ipv4'] = {.
	treeHead  = pattern.New(`^[\w.]*((?:\[:?["']?[\w.-]+["']?\])+)\s*=\s*\{$`)
	treeEntry = pattern.New(`^[:"']*([\w.-]+)["']?\s*(?:=>|:)\s*(.+?),?$`)

	// The resource NetAdapterAdvancedProperty of NetworkingDsc.
	keywordLine = pattern.New(`(?i)^RegistryKeyword\s*=\s*["']([*\w ]+)["']$`)
	dataLine    = pattern.New(`(?i)^RegistryValue\s*=\s*["']?(\w+)["']?$`)
	// switchHead and switchLine are of its resources for what a NIC does.
	switchHead = pattern.New(`^NetAdapter(Lso|Rss|Rsc|Rdma)\b[^=]*$`)
	switchLine = pattern.New(`^(?:State|Enabled)\s*=\s*\$(true|false)\b`)

	// nddKey is an entry of a table whose key is the command and whose value is its last word.
	nddKey = pattern.New(`^(?:\w+\s*=\s*\{\s*)?["']ndd -set /dev/(\w+) (\w+)["']\s*:\s*["']?(\w+)["']?[,}]?$`)

	// dockerMTU is the option of a network of Docker.
	dockerMTU = pattern.New(`com\.docker\.network\.driver\.mtu["']?\s*[:=]\s*["']?(\d+)\b`)

	// ofVyOS is a sysctl of VyOS, or of a profile of LXD.
	ofVyOS = pattern.New(`(?:^|["'])(?:set system sysctl (?:parameter|custom) |.*\blinux\.sysctl\.)(` + namePattern +
		`)(?: value |: | |=)["']?(\d[\d ]*)["']*,?$`)
	// nicOfVyOS is what VyOS sets of a NIC.
	nicOfVyOS = pattern.New(`^set interfaces ethernet (\S+) (mtu|offload|ring-buffer [rt]x) '?(\w+)'?$`)

	// annotated is a sysctl behind a prefix that says so: x.sysctl.example.io/net.core.somaxconn: "1".
	annotated = pattern.New(`^[\w.-]*sysctl[\w.-]*/(` + namePattern + `)\s*:\s*["']?([^"']+)["']?$`)
)

// nested reads a line of one of these forms.
func (r *reader) nested(text string) bool {
	if m := annotated.FindStringSubmatch(text); m != nil {
		return r.block(m[1], m[2])
	}
	if m := dockerMTU.FindStringSubmatch(text); m != nil {
		r.add(Linux, "link:*/mtu", m[1])
		return true
	}
	if m := ofVyOS.FindStringSubmatch(text); m != nil {
		return r.block(m[1], m[2])
	}
	if m := nicOfVyOS.FindStringSubmatch(text); m != nil {
		if option, queue, ok := strings.Cut(m[2], " "); ok && option != "" {
			r.ethtoolOption("-G", m[1], queue, m[3])
		} else if m[2] == "mtu" {
			r.add(Linux, "link:"+m[1]+"/mtu", m[3])
		} else {
			r.ethtoolOption("-K", m[1], m[3], "on")
		}
		return true
	}
	if m := nddKey.FindStringSubmatch(text); m != nil {
		r.add(Solaris, "ndd:"+strings.Replace(m[1], "ip6", "ip", 1)+"/"+m[2], m[3])
		return true
	}
	return r.inTree(text) || r.inResource(text) || r.cloud(text) || r.program(text)
}

// inTree reads the lines of a hash, up to its end.
func (r *reader) inTree(text string) bool {
	n := &r.nest
	if m := treeHead.FindStringSubmatch(text); m != nil && strings.Contains(m[1], "sysctl") {
		n.tree = []string{m[1]}
		return true
	}
	if len(n.tree) == 0 {
		return false
	}
	if strings.HasPrefix(text, "}") {
		n.tree = n.tree[:len(n.tree)-1]
		return true
	}
	m := treeEntry.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	const deepest = 8
	if m[2] == "{" && len(n.tree) < deepest {
		n.tree = append(n.tree, "['"+m[1]+"']")
		return true
	}
	return r.attribute(strings.Join(slices.Concat(n.tree, []string{"['" + m[1] + "']"}), ""), m[2])
}

// inResource reads the keyword and the value of a resource, in this order.
func (r *reader) inResource(text string) bool {
	n := &r.nest
	if !r.windows {
		return false
	}
	if m := keywordLine.FindStringSubmatch(text); m != nil {
		n.keyword = m[1]
		return true
	}
	if m := switchHead.FindStringSubmatch(text); m != nil {
		n.noun = m[1]
	}
	if m := switchLine.FindStringSubmatch(text); m != nil && n.noun != "" {
		verb := "Disable"
		if m[1] == "true" {
			verb = "Enable"
		}
		r.cmdlet(command{words: []string{verb + "-NetAdapter" + n.noun, "-Name", "*"}})
		n.noun = ""
		return true
	}
	m := dataLine.FindStringSubmatch(text)
	if m == nil || n.keyword == "" {
		return false
	}
	r.add(Windows, "adapter:*/"+n.keyword, m[1])
	n.keyword = ""
	return true
}
