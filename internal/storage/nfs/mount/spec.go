package mount

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Spec is what a mount asks for. Zero numbers leave the value to kernel and server.
type Spec struct {
	Source      string   `json:"source"`            // SERVER:/EXPORT
	Version     string   `json:"version,omitempty"` // 4.2, 4.1, 4.0, 3
	Protocol    string   `json:"protocol,omitempty"`
	ReadSize    int64    `json:"rsize_bytes,omitempty"`
	WriteSize   int64    `json:"wsize_bytes,omitempty"`
	Connections int      `json:"nconnect,omitempty"`
	ReadAhead   int64    `json:"read_ahead_bytes,omitempty"` // no mount option: a setting of the mounted device
	Extra       []string `json:"options,omitempty"`          // more options, as typed
}

// Effective is what a mount has.
type Effective struct {
	Version     string `json:"version,omitempty"`
	Protocol    string `json:"protocol,omitempty"`
	ReadSize    int64  `json:"rsize_bytes"`
	WriteSize   int64  `json:"wsize_bytes"`
	Connections int    `json:"nconnect"`
	ReadAhead   int64  `json:"read_ahead_bytes"`
}

// ErrSource reports a text that does not name an export.
var ErrSource = errors.New("want SERVER:/EXPORT")

// SplitSource splits SERVER:/EXPORT; an IPv6 address is in brackets.
func SplitSource(source string) (server, export string, err error) {
	at := strings.Index(source, ":/")
	if strings.HasPrefix(source, "[") {
		at = strings.Index(source, "]:/") + 1
	}
	if at <= 0 {
		return "", "", fmt.Errorf("%s: %w", source, ErrSource)
	}
	server, export = strings.Trim(source[:at], "[]"), source[at+1:]
	_, notIP := netip.ParseAddr(server)
	if strings.ContainsAny(server, " \t\n,/") || server == "" || strings.HasPrefix(source, "[") && notIP != nil ||
		strings.ContainsFunc(export, unicode.IsControl) {
		return "", "", fmt.Errorf("%s: %w", source, ErrSource)
	}
	return server, export, nil
}

// reserved are the options that the bench sets itself.
var reserved = []string{"vers", "nfsvers", "proto", "rsize", "wsize", "nconnect", "addr", "clientaddr", "soft", "hard",
	"timeo", "retrans", "sharecache", "nosharecache", "bg", "fg"}

// Bounds of the kernel's client: NFS_MAX_FILE_IO_SIZE, and NFS_MAX_CONNECTIONS of
// fs/nfs/internal.h. A server grants 1 MiB at most so far.
const (
	mostTransfer    = 4 << 20
	mostConnections = 16
)

// ParseOptions reads mount options as in fstab: those that a sweep varies become fields, the others
// stay as they are. Options that the bench sets itself are an error.
func ParseOptions(text string, s *Spec) error {
	number := func(option, value string, most int64) (int64, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("option %s: not a number", option)
		}
		if n < 1 || n > most {
			return 0, fmt.Errorf("option %s: not within 1 and %d", option, most)
		}
		return n, nil
	}
	for option := range strings.SplitSeq(text, ",") {
		option = strings.TrimSpace(option)
		name, value, valued := strings.Cut(option, "=")
		// A blank or a line end would end the field of fstab.
		if name == "" && valued || strings.ContainsFunc(option, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r)
		}) {
			return fmt.Errorf("option %q: not a mount option", option)
		}
		var err error
		switch name {
		case "":
		case "rsize":
			s.ReadSize, err = number(option, value, mostTransfer)
		case "wsize":
			s.WriteSize, err = number(option, value, mostTransfer)
		case "nconnect":
			var n int64
			n, err = number(option, value, mostConnections)
			s.Connections = int(n)
		case "vers", "nfsvers":
			s.Version = value
		case "proto":
			s.Protocol = value
		default:
			if slices.Contains(reserved, name) {
				return fmt.Errorf("option %s: linerate sets it for its own mounts", name)
			}
			s.Extra = append(s.Extra, option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Options returns the options for fstab and its like, without those of the bench.
func (s Spec) Options() string {
	var all []string
	add := func(name string, value int64) {
		if value > 0 {
			all = append(all, fmt.Sprintf("%s=%d", name, value))
		}
	}
	if s.Version != "" {
		all = append(all, "vers="+s.Version)
	}
	if s.Protocol != "" {
		all = append(all, "proto="+s.Protocol)
	}
	add("rsize", s.ReadSize)
	add("wsize", s.WriteSize)
	if s.Connections > 1 {
		add("nconnect", int64(s.Connections))
	}
	return strings.Join(append(all, s.Extra...), ",")
}

// kernelText returns the options for mount(2) of a mount of our own: it shares neither cache nor
// options with others, and it gives up on a server that does not answer.
func (s Spec) kernelText(server, client netip.Addr) string {
	all := []string{"addr=" + server.String(), "nosharecache", "soft", "timeo=100", "retrans=1"}
	if strings.HasPrefix(s.Version, "4") {
		all = append(all, "clientaddr="+client.String())
	} else {
		all = append(all, "nolock")
	}
	if o := s.Options(); o != "" {
		all = append(all, o)
	}
	return strings.Join(all, ",")
}

// Persisted is a mount with the options of a spec, for the places that keep mounts.
type Persisted struct {
	Fstab   string `json:"fstab"`
	Autofs  string `json:"autofs"`
	Systemd string `json:"systemd"`
	Unit    string `json:"systemd_unit"`            // the name of the unit's file
	NFSConf string `json:"nfs_conf,omitempty"`      // read-ahead, for nfsrahead(5)
	Kernel  string `json:"read_ahead_kb,omitempty"` // read-ahead, until the next mount
}

// Persist returns how to keep a spec for a mount point.
func (s Spec) Persist(at string) Persisted {
	kind := "nfs"
	options := s.Options()
	if options == "" {
		options = "defaults"
	}
	p := Persisted{
		Fstab:  fmt.Sprintf("%s %s %s %s,_netdev 0 0", fstabEscape(s.Source), fstabEscape(at), kind, options),
		Autofs: fmt.Sprintf("%s -fstype=%s,%s %s", autofsQuote(path.Base(at)), kind, options, autofsQuote(s.Source)),
		Unit:   unitName(at) + ".mount",
		Systemd: fmt.Sprintf("[Unit]\nDescription=%s\n\n[Mount]\nWhat=%s\nWhere=%s\nType=%s\nOptions=%s,_netdev\n\n"+
			"[Install]\nWantedBy=remote-fs.target\n", s.Source, s.Source, at, kind, options),
	}
	if s.ReadAhead > 0 {
		p.NFSConf = fmt.Sprintf("[nfsrahead]\n%s=%d\n", at, s.ReadAhead>>10)
		p.Kernel = fmt.Sprintf("echo %d > /sys/class/bdi/$(mountpoint -d %s)/read_ahead_kb", s.ReadAhead>>10, at)
	}
	return p
}

// fstabEscape writes blanks as fstab(5) wants them.
func fstabEscape(s string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, `\`, `\134`).Replace(s)
}

// autofsQuote writes blanks as autofs(5) wants them.
func autofsQuote(s string) string {
	if strings.ContainsAny(s, " \t") {
		return `"` + s + `"`
	}
	return s
}

// unitName escapes a path as systemd-escape(1) --path does.
func unitName(p string) string {
	p = strings.Trim(path.Clean(p), "/")
	if p == "" || p == "." {
		return "-"
	}
	var b strings.Builder
	for i := range len(p) {
		switch c := p[i]; {
		case c == '/':
			b.WriteByte('-')
		case c == '.' && i > 0, c == '_', c == ':', c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
