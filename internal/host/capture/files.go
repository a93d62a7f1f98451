package capture

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/bits"
	"net/netip"
	"path"
	"strconv"
	"strings"
)

// shownConfig is how much of a device's configuration space is kept, in bytes. It contains the
// lists of capabilities that are read (PCI Local Bus 3.0). The rest belongs to PCI Express and
// contains the device's serial number, which NICs derive from their hardware address.
const shownConfig = 256

// content replaces the private parts of one file, by the format that the kernel uses for its name.
func (s *scrubber) content(name string, in []byte) []byte {
	base := path.Base(name)
	switch {
	// The order is that of certainty: a file whose whole content is one name, then files in which
	// text rules would replace too much, then those that hold only a secret, then tables with known
	// columns. The rest is text.
	case name == "proc/sys/kernel/hostname", name == "proc/sys/kernel/domainname":
		return []byte(s.trimmed(in, s.hostName))
	case name == "proc/version":
		// "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org) (gcc …": a kernel of one's
		// own making has a user and a host there.
		release, _, _ := bytes.Cut(in, []byte(" (")) // The parentheses contain the kernel's builder and host.
		return append(bytes.TrimRight(release, "\n"), '\n')
	case name == "proc/sys/kernel/osrelease", base == "version", base == "firmware_version":
		return in // Four numbers separated by dots are a version here.
		// Cut before the rules for text: it is binary, and four bytes that look like letters would
		// be replaced.
	case base == "config" && strings.HasPrefix(name, "sys/"):
		return in[:min(len(in), shownConfig)]
	case secret(base):
		return []byte(s.trimmed(in, s.serial))
		// Again, although host.Root.Copy has done it: this archive may have been made with cp -a.
	case base == "environ":
		return environment(in)
	case base == "cgroup":
		return []byte(s.lines(in, s.groupLine))
	case base == "ifalias":
		return []byte(s.trimmed(in, func(text string) string { return s.replace.name("alias", text) }))
	case strings.HasPrefix(name, "linerate/") && strings.HasSuffix(name, ".json"):
		return s.document(in)
	case strings.HasPrefix(name, "proc/net/") && (base == "route" || base == "ipv6_route" || base == "if_inet6"):
		return []byte(s.lines(in, func(line string) string { return s.tableLine(base, line) }))
	case mounts(name):
		return []byte(s.lines(in, s.mountLine))
	case name == "proc/cmdline":
		return []byte(s.trimmed(in, s.commandLine))
	case name == "proc/cpuinfo":
		return []byte(s.lines(in, s.processorLine))
	}
	return []byte(s.text(string(in)))
}

// trimmed replaces a value and keeps the blanks around it; an empty value stays.
func (s *scrubber) trimmed(in []byte, replace func(string) string) string {
	value := strings.TrimSpace(string(in))
	if value == "" {
		return string(in)
	}
	// The blanks stay, so that a file without a newline at its end still has none: readers of the
	// kernel's files depend on it.
	before, after, _ := strings.Cut(string(in), value)
	return before + replace(value) + after
}

// lines replaces a table line by line. A last line without a newline still has none.
func (s *scrubber) lines(in []byte, replace func(string) string) string {
	var out strings.Builder
	for line := range strings.Lines(string(in)) {
		body := strings.TrimRight(line, "\n")
		out.WriteString(replace(body) + line[len(body):])
	}
	return out.String()
}

// secret reports whether an attribute identifies one single thing and has no other use
// (sysfs-class-net, /sys/class/dmi/id).
func secret(base string) bool {
	switch base {
	// These derive from hardware addresses, and are printed without colons, so the rule for those
	// would miss them. vpd is the vital product data of a card, with its serial number as text.
	case "phys_port_id", "phys_switch_id", "wwid", "unique_id", "machine-id", "vpd":
		return true
	}
	return strings.HasSuffix(base, "serial") || strings.HasSuffix(base, "asset_tag") ||
		strings.HasSuffix(base, "serial_number")
}

// serial replaces a serial number; UUIDs and runs of digits keep their form.
func (s *scrubber) serial(text string) string {
	if to, ok := s.identifier(text); ok {
		return to
	}
	return s.replace.name("serial", text)
}

// tableLine replaces the addresses of one line of /proc/net/route, ipv6_route and if_inet6, which
// are hexadecimal.
func (s *scrubber) tableLine(table, line string) string {
	// The kernel prints these addresses as bare hexadecimal digits, which the rules for text do not
	// recognise: without these rules they would leak.
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	// Each replacement has the place of its field: the columns have a fixed width. A replacement of
	// another length would be a bug; what was there is then not a valid address.
	replaceField := func(i int, to string) {
		if i < len(fields) && len(to) == len(fields[i]) {
			line = put(line, i, to)
		}
	}
	switch {
	case table == "route" && len(fields) >= 8:
		// The prefix length is needed to keep a network a network; the number of set bits is the
		// same in either byte order.
		mask, err := strconv.ParseUint(fields[7], 16, 32)
		if err != nil {
			return s.text(line) // The heading.
		}
		replaceField(1, s.number4(fields[1], bits.OnesCount32(uint32(mask))))
		replaceField(2, s.number4(fields[2], -1))
	case table == "ipv6_route" && len(fields) >= 5:
		replaceField(0, s.digits6(fields[0], fields[1]))
		replaceField(2, s.digits6(fields[2], fields[3]))
		replaceField(4, s.digits6(fields[4], ""))
	case table == "if_inet6" && len(fields) >= 1:
		replaceField(0, s.digits6(fields[0], ""))
	}
	return s.interfaceName(line)
}

// put replaces the field with that number by a text of the same length.
func put(line string, number int, to string) string {
	at := 0
	// By hand, because strings.Fields loses the blanks between the columns.
	for i := 0; ; i++ {
		at += len(line[at:]) - len(strings.TrimLeft(line[at:], " \t"))
		if i == number {
			return line[:at] + to + line[at+len(to):]
		}
		if next := strings.IndexAny(line[at:], " \t"); next >= 0 {
			at += next
			continue
		}
		return line
	}
}

// number4 replaces an IPv4 address printed as one number of the machine (%08X). length is that of
// its prefix, -1 for an address.
func (s *scrubber) number4(text string, length int) string {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		return text
	}
	// %08X of a number in network order shows the bytes backwards on most machines. Replacing them
	// in that order would keep the wrong prefixes.
	if !s.bigEndian {
		b = []byte{b[3], b[2], b[1], b[0]}
	}
	to := s.sized(netip.AddrFrom4([4]byte(b)), length).As4()
	if !s.bigEndian {
		to = [4]byte{to[3], to[2], to[1], to[0]}
	}
	return strings.ToUpper(hex.EncodeToString(to[:]))
}

// digits6 replaces an IPv6 address of 32 digits; length is the hexadecimal text of its prefix
// length, empty for an address.
func (s *scrubber) digits6(text, length string) string {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 16 {
		return text
	}
	n := -1
	if size, err := strconv.ParseUint(length, 16, 8); err == nil && size <= 128 {
		n = int(size)
	}
	to := s.sized(netip.AddrFrom16([16]byte(b)), n).As16()
	return hex.EncodeToString(to[:])
}

// sized replaces an address whose prefix length is known from another field; negative: an address
// of a host, without a prefix length.
func (s *scrubber) sized(a netip.Addr, length int) netip.Addr {
	// An address of a host has no bits that must be zero.
	if length < 0 {
		return s.replace.addr(a)
	}
	return s.replace.prefix(netip.PrefixFrom(a, length)).Addr()
}

// environment keeps the part of a process's environment that shows a container.
func environment(in []byte) []byte {
	var kept []byte
	for variable := range bytes.SplitSeq(in, []byte{0}) {
		// systemd and container runtimes set it for the first process; its value is docker, lxc,
		// podman or similar.
		if bytes.HasPrefix(variable, []byte("container=")) {
			kept = append(append(kept, variable...), 0)
		}
	}
	return kept
}

// groupWords begin the elements of a control group's path that show its origin. The name or the
// number of one container follows them.
var groupWords = []string{
	"docker", "lxc", "kubepods", "libpod", "containerd", "machine.slice", "system.slice", "user.slice", "init.scope",
	"burstable", "besteffort",
}

// groupLine replaces, in a line of /proc/PID/cgroup (NUMBER:CONTROLLERS:PATH), the names in the
// path.
func (s *scrubber) groupLine(line string) string {
	fields := strings.SplitN(line, ":", 3)
	if len(fields) < 3 {
		return s.text(line)
	}
	parts := strings.Split(fields[2], "/")
	for i, p := range parts {
		word := ""
		for _, w := range groupWords {
			if strings.HasPrefix(p, w) {
				word = w
			}
		}
		switch {
		// A slice of systemd has the same name on every host; a group below it may have a chosen
		// name.
		case p == word, p == "..":
		case word != "":
			parts[i] = word + "-" + s.replace.name("group", p)
		default:
			parts[i] = s.replace.name("group", p)
		}
	}
	return fields[0] + ":" + fields[1] + ":" + strings.Join(parts, "/")
}

// processorLine keeps all of /proc/cpuinfo except the serial number that some boards have there.
func (s *scrubber) processorLine(line string) string {
	key, value, ok := strings.Cut(line, ":")
	// Raspberry Pi and similar boards. The rest of the file is the same for every machine of one
	// model.
	if ok && strings.EqualFold(strings.TrimSpace(key), "serial") && strings.TrimSpace(value) != "" {
		return key + ": " + s.serial(strings.TrimSpace(value))
	}
	return line
}

// document replaces the texts of a JSON document, keys included, since interfaces are keys. Numbers
// stay as they are printed.
func (s *scrubber) document(in []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(in))
	d.UseNumber() // Counters have 64 bits, a float64 has 53.
	var body any
	if err := d.Decode(&body); err != nil {
		return []byte(s.text(string(in)))
	}
	// Keys are sorted, unlike in the file; readers of JSON do not depend on the order, and two
	// captures can be compared.
	out, err := json.MarshalIndent(s.value("", body), "", "\t")
	if err != nil {
		return []byte(s.text(string(in)))
	}
	return append(out, '\n')
}

// value replaces what is below one key.
func (s *scrubber) value(key string, v any) any {
	switch v := v.(type) {
	case string:
		return s.keyed(key, v)
	case []any:
		for i := range v {
			v[i] = s.value(key, v[i])
		}
	case map[string]any:
		to := make(map[string]any, len(v))
		// Only a mount has options. The rule for text would keep its path and source, which are no
		// addresses.
		if _, mount := v["options"].(string); mount {
			return s.mount(v)
		}
		for k, below := range v {
			to[s.text(k)] = s.value(k, below)
		}
		return to
	}
	return v
}

// mount replaces a mounted file system in a document: source, path and options as in the kernel's
// tables.
func (s *scrubber) mount(v map[string]any) map[string]any {
	replace := map[string]func(string) string{"source": s.source, "path": s.directories, "options": s.options}
	for key, with := range replace {
		if text, ok := v[key].(string); ok {
			v[key] = with(text)
		}
	}
	return v
}

// keyed replaces a text according to its key.
func (s *scrubber) keyed(key, text string) string {
	switch {
	case text == "":
		return ""
		// 5.10.0.7 has the form of an address. A reader needs versions first, so the key, which is
		// ours, identifies them.
	case strings.HasSuffix(key, "version"), strings.HasPrefix(key, "firmware"), key == "kernel":
		return text
	case key == "alias", key == "ssid":
		return s.replace.name(key, text)
	case secret(key):
		return s.serial(text)
	}
	return s.text(text)
}
