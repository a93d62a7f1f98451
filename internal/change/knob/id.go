package knob

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Kinds of knobs: the part of an ID before the colon.
const (
	KindSysctl   = "sysctl"
	KindLink     = "link"
	KindEthtool  = "ethtool"
	KindRoute    = "route"
	KindQueue    = "queue"
	KindIRQ      = "irq"
	KindQdisc    = "qdisc"
	KindModule   = "module"
	KindNFS      = "nfs"
	KindCPU      = "cpu"
	KindPCI      = "pci"
	KindBlock    = "block"
	KindNamed    = "named"
	KindUnbound  = "unbound"
	KindKresd    = "kresd"
	KindRegistry = "registry"
	KindIpadm    = "ipadm"
	KindDladm    = "dladm"
	KindFirewall = "firewall" // the rules of a table
	KindIfconfig = "ifconfig" // FreeBSD: options of an interface
	KindLoader   = "loader"   // FreeBSD: tunables in /boot/loader.conf
	KindDriver   = "driver"   // illumos: properties in /kernel/drv/NAME.conf
	KindAdapter  = "adapter"  // Windows: advanced properties of a network adapter
	KindNetTCP   = "nettcp"   // Windows: TCP setting templates
)

// kinds lists all, with whether the subject is the name of a network interface.
//
// The parser also accepts the kinds of other systems (registry, ipadm, …), because the documents of
// other hosts contain them. Reading one is ErrNotSupported and not
// ErrUnknown.
var kinds = map[string]bool{
	KindSysctl: false, KindLink: true, KindEthtool: true, KindRoute: false, KindQueue: true, KindIRQ: false,
	KindQdisc:  true,
	KindModule: false, KindNFS: false, KindCPU: false, KindPCI: false, KindBlock: false, KindRegistry: false,
	KindIpadm: false, KindDladm: true, KindFirewall: false, KindNamed: false, KindUnbound: false, KindKresd: false,
	KindIfconfig: true, KindLoader: false, KindDriver: false, KindAdapter: true, KindNetTCP: false,
}

// InFile reports whether a knob is an option in a file or in a registry, which a restart of the
// host leaves as it is. The kernel forgets every other knob.
func (id ID) InFile() bool {
	switch id.Kind() {
	case KindNamed, KindUnbound, KindKresd, KindLoader, KindDriver, KindRegistry, KindAdapter, KindNetTCP:
		return true
	}
	return false
}

// featureAliases are the short words of ethtool(8) for one bit each. The old word tso covered
// several bits; here it is the first of them.
//
// The names of the bits are those of net/ethtool/common.c (netdev_features_strings).
var featureAliases = map[string]string{
	"tso": "tx-tcp-segmentation",
	"gso": "tx-generic-segmentation",
	"gro": "rx-gro",
	"lro": "rx-lro",
	"sg":  "tx-scatter-gather",
	"rx":  "rx-checksum",
	"tx":  "tx-checksum-ip-generic",
}

// nddAliases are the names that ndd(8) has for properties of ipadm(8) (libipadm, tcp_name_map). The
// names of ipadm's first releases are none of them: today's releases do not know those any more.
var nddAliases = map[string]string{
	"tcp_xmit_hiwat": "send_buf", "tcp_recv_hiwat": "recv_buf", "tcp_max_buf": "max_buf",
	"tcp_cwnd_max": "_cwnd_max", "udp_max_buf": "max_buf",
	"udp_recv_hiwat": "recv_buf", "udp_xmit_hiwat": "send_buf", "tcp_conn_req_max_q": "_conn_req_max_q",
	"tcp_conn_req_max_q0": "_conn_req_max_q0", "tcp_wscale_always": "_wscale_always",
	"tcp_tstamp_always": "_tstamp_always",
}

// ParseID reads a knob's name and gives its canonical spelling: ParseID of a canonical ID gives the
// same ID. The error is an *Error with ErrUnknown when the text is no name of any kind; whether the
// host has such a knob is for a Backend to say.
func ParseID(s string) (ID, error) {
	id, err := parseID(s)
	if err != nil {
		return "", &Error{Op: "parse", Knob: ID(s), Err: err}
	}
	return id, nil
}

// WithKind returns a name or a pattern with its kind. Fingers know sysctl(8), so one without a kind
// is that of a sysctl.
func WithKind(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return KindSysctl + ":" + name
}

func parseID(s string) (ID, error) {
	kind, rest, ok := strings.Cut(s, ":")
	onInterface, known := kinds[kind]
	switch {
	case !ok || !known:
		return "", fmt.Errorf("%w: want a kind in front, like sysctl:net.ipv4.tcp_rmem or link:eth0/mtu", ErrUnknown)
	case rest == "" || strings.ContainsFunc(rest, notPrintable) || strings.TrimSpace(rest) != rest:
		return "", fmt.Errorf("%w: empty, or holds control characters or blanks around it", ErrUnknown)
	case strings.Contains(rest, " ") && kind != KindNFS && kind != KindRegistry && kind != KindAdapter &&
		!privateFlag(kind, rest):
		return "", fmt.Errorf("%w: only mount points, registry keys, adapters and private flags hold blanks", ErrUnknown)
	case kind == KindLoader:
		if strings.ContainsAny(rest, `/"'\#=`) {
			return "", fmt.Errorf("%w: want the name of a tunable, like loader:hw.em.max_interrupt_rate", ErrUnknown)
		}
		return ID(kind + ":" + rest), nil
	case kind == KindSysctl:
		path, err := sysctlPath(rest)
		if err != nil {
			return "", err
		}
		return SysctlID(path...), nil
	}
	separator := "/"
	if kind == KindRegistry {
		separator = `\`
	}
	// The attribute never holds a separator, the subject may (10.0.0.0/8, eth0/rx-0, /mnt/x).
	at := strings.LastIndex(rest, separator)
	if at <= 0 || at == len(rest)-1 {
		return "", fmt.Errorf("%w: want %s:SUBJECT%sATTRIBUTE", ErrUnknown, kind, separator)
	}
	subject, attribute := rest[:at], rest[at+1:]
	// No attribute of a kernel starts with a digit: this is a prefix length whose attribute was
	// forgotten.
	if c := attribute[0]; kind != KindRegistry && c >= '0' && c <= '9' {
		return "", fmt.Errorf("%w: %s is no attribute", ErrUnknown, attribute)
	}
	if onInterface {
		name, _, _ := strings.Cut(subject, "/")
		if err := checkInterface(name); err != nil {
			return "", err
		}
	}
	switch kind {
	case KindLink, KindEthtool:
		if strings.Contains(subject, "/") {
			return "", fmt.Errorf("%w: an interface name holds no slash", ErrUnknown)
		}
		if f, ok := strings.CutPrefix(attribute, "feature."); ok {
			if full, ok := featureAliases[f]; ok {
				attribute = "feature." + full
			}
		}
	case KindIpadm:
		if full, ok := nddAliases[attribute]; ok {
			attribute = full
		}
	case KindModule:
		// The kernel's own spelling; modprobe(8) takes a dash for the same name.
		subject, attribute = strings.ReplaceAll(subject, "-", "_"), strings.ReplaceAll(attribute, "-", "_")
	case KindNamed, KindUnbound, KindKresd:
		if subject != "*" && path.Clean(subject) != subject || subject[0] != '/' && subject[0] != '*' {
			return "", fmt.Errorf("%w: want the whole path of a configuration file", ErrUnknown)
		}
	case KindRoute:
		var err error
		if subject, err = routeSubject(subject); err != nil {
			return "", err
		}
	}
	return ID(kind + ":" + subject + separator + attribute), nil
}

// privateFlag returns the one attribute of a NIC that is the driver's own text: some drivers put
// blanks into it. The name of the interface has none.
func privateFlag(kind, rest string) bool {
	name, attribute, _ := strings.Cut(rest, "/")
	return kind == KindEthtool && strings.HasPrefix(attribute, "flag.") && !strings.Contains(name, " ")
}

// notPrintable refuses what would not survive a log line or a shell; of the blanks IsPrint lets
// only U+0020 through.
func notPrintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// checkInterface applies the kernel's rule for names (dev_valid_name). "*" stands for all in
// patterns of the catalogue.
//
// The length is left to the kernel: an id may come from the document of a host with longer names
// than ours.
func checkInterface(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/:`) {
		return fmt.Errorf("%w: %q is no interface name", ErrUnknown, name)
	}
	return nil
}

// routeSubject gives a destination its one spelling: masked prefix, or "default" for IPv4.
//
// The kernel masks a destination too, so that 10.1.2.3/8 and 10.0.0.0/8 are one route and must be
// one knob: the journal goes by the text of the id.
func routeSubject(s string) (string, error) {
	if s == "default" || s == "*" {
		return s, nil
	}
	p, err := netip.ParsePrefix(s)
	if a, aerr := netip.ParseAddr(s); aerr == nil {
		if a.Zone() != "" {
			return "", fmt.Errorf("%w: a destination has no zone", ErrUnknown)
		}
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: want a prefix, an address or default: %w", ErrUnknown, err)
	}
	if p = p.Masked(); p.Addr().Is4() && p.Bits() == 0 {
		return "default", nil
	}
	return p.String(), nil
}

// sysctlPath reads the two notations of sysctl(8): if the first separator is a slash the text is a
// path, otherwise dots separate elements and a slash stands for a dot inside an element.
func sysctlPath(s string) ([]string, error) {
	var path []string
	if first := strings.IndexAny(s, "./"); first >= 0 && s[first] == '/' {
		path = strings.Split(s, "/")
	} else {
		path = strings.Split(s, ".")
		for i, e := range path {
			path[i] = strings.ReplaceAll(e, "/", ".")
		}
	}
	for _, e := range path {
		// "." and ".." would leave the tree of settings.
		if e == "" || e == "." || e == ".." {
			return nil, fmt.Errorf("%w: bad path element %q", ErrUnknown, e)
		}
	}
	if len(path) < 2 {
		return nil, fmt.Errorf("%w: want at least two path elements", ErrUnknown)
	}
	// An element with a dot in front of the first separator would be read as the other notation.
	if strings.Contains(path[0], ".") {
		return nil, fmt.Errorf("%w: no top directory %q", ErrUnknown, path[0])
	}
	return path, nil
}

// SysctlID makes the ID of a sysctl from the elements of its path below /proc/sys. Elements are
// taken as they are: none may be empty or hold a slash.
//
// The dot inside of an element becomes a slash, which a file name cannot hold, so that the mapping
// has an inverse.
func SysctlID(path ...string) ID {
	elements := slices.Clone(path)
	for i, e := range elements {
		elements[i] = strings.ReplaceAll(e, ".", "/")
	}
	return ID(KindSysctl + ":" + strings.Join(elements, "."))
}

// Kind is the part before the colon.
func (id ID) Kind() string {
	kind, _, _ := strings.Cut(string(id), ":")
	return kind
}

// rest is the part behind the colon.
func (id ID) rest() string {
	_, rest, _ := strings.Cut(string(id), ":")
	return rest
}

// split parts subject and attribute.
func (id ID) split() (subject, attribute string) {
	rest := id.rest()
	separator := "/"
	switch id.Kind() {
	case KindSysctl, KindLoader:
		return "", rest
	case KindRegistry:
		separator = `\`
	}
	at := strings.LastIndex(rest, separator)
	if at < 0 {
		return "", rest
	}
	return rest[:at], rest[at+1:]
}

// Subject is what the knob belongs to: an interface, a destination, a mount point. It is empty for
// a sysctl.
func (id ID) Subject() string {
	s, _ := id.split()
	return s
}

// Attribute is the knob's own name: the whole dotted name of a sysctl, mtu, feature.rx-gro,
// initcwnd.
func (id ID) Attribute() string {
	_, a := id.split()
	return a
}

// Interface is the network interface that the knob acts on, empty when it acts on none or on all of
// them. Sysctls of one interface (net.ipv4.conf.eth0.rp_filter) name it as well; their "all" and
// "default" are no interfaces.
//
// It is what reports that a change touches the very interface that carries a session.
func (id ID) Interface() string {
	if kinds[id.Kind()] {
		name, _, _ := strings.Cut(id.Subject(), "/")
		return name
	}
	// net.ipv4.conf.IF.x and net.ipv6.neigh.IF.x have five elements; nothing else below net names
	// an interface.
	if p := id.Path(); len(p) == 5 && p[0] == "net" && (p[2] == "conf" || p[2] == "neigh") && p[3] != "all" &&
		p[3] != "default" {
		return p[3]
	}
	// FreeBSD has the settings of a card below dev.DRIVER.UNIT, and its interface is DRIVERUNIT.
	if p := id.Path(); len(p) >= 4 && p[0] == "dev" && p[2] != "*" && strings.Trim(p[2], "0123456789") == "" {
		return p[1] + p[2]
	}
	return ""
}

// OwnParameter begins the attribute of a parameter that only the present I/O scheduler of a disk
// has.
const OwnParameter = "iosched."

// DiskFile returns the file of an attribute of a disk, below /sys/block/NAME.
func DiskFile(attribute string) string {
	if own, ok := strings.CutPrefix(attribute, OwnParameter); ok {
		return "queue/iosched/" + own
	}
	return "queue/" + attribute
}

// Path returns the elements of a sysctl's path below /proc/sys; nil for other kinds and for names
// that are none.
func (id ID) Path() []string {
	if id.Kind() != KindSysctl {
		return nil
	}
	path, err := sysctlPath(id.rest())
	if err != nil {
		return nil
	}
	return path
}
