package read

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// rangeOf reads a value, a prefix or a range.
func rangeOf(f ruleset.Field, b json.RawMessage) (ruleset.Range, error) {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] != '{' {
		var text string
		if b[0] == '"' {
			if err := json.Unmarshal(b, &text); err != nil {
				return ruleset.Range{}, err
			}
		} else {
			text = string(b)
		}
		return valueOf(f, text)
	}
	var o struct {
		Prefix *struct {
			Addr string
			Len  int
		}
		Range []json.RawMessage
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return ruleset.Range{}, err
	}
	switch {
	case o.Prefix != nil && (f == ruleset.Source || f == ruleset.Destination):
		a, err := netip.ParseAddr(o.Prefix.Addr)
		if err != nil {
			return ruleset.Range{}, err
		}
		p := netip.PrefixFrom(a, o.Prefix.Len)
		if !p.IsValid() {
			return ruleset.Range{}, fmt.Errorf("prefix %s/%d", o.Prefix.Addr, o.Prefix.Len)
		}
		return ruleset.Prefix(p), nil
	case len(o.Range) == 2:
		first, err := rangeOf(f, o.Range[0])
		if err != nil {
			return ruleset.Range{}, err
		}
		last, err := rangeOf(f, o.Range[1])
		if err == nil && first.First.Compare(last.Last) > 0 {
			err = fmt.Errorf("range from %s to %s", f.Format(first.First), f.Format(last.Last))
		}
		return ruleset.Range{First: first.First, Last: last.Last}, err
	}
	return ruleset.Range{}, fmt.Errorf("no value of %s: %.80s", f, b)
}

// valueOf reads a value, a prefix or the name of a service, as the programs print them.
func valueOf(f ruleset.Field, text string) (ruleset.Range, error) {
	bad := fmt.Errorf("no value of %s: %q", f, text)
	switch f {
	case ruleset.InInterface, ruleset.OutInterface:
		return ruleset.Names(text), nil
	case ruleset.Source, ruleset.Destination:
		if p, err := netip.ParsePrefix(text); err == nil {
			return ruleset.Prefix(p), nil
		}
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return ruleset.Range{}, bad
		}
		return ruleset.One(ruleset.Address(a)), nil
	case ruleset.Protocol:
		if v, ok := ruleset.ProtocolNumber(text); ok {
			return ruleset.One(ruleset.Number(v)), nil
		}
		return ruleset.Range{}, bad
	case ruleset.State:
		if v, ok := ruleset.StateNumber(text); ok {
			return ruleset.One(ruleset.Number(v)), nil
		}
		return ruleset.Range{}, bad
	case ruleset.Family:
		switch text {
		case "ipv4", "ip", "2":
			return ruleset.One(ruleset.Number(ruleset.IPv4)), nil
		case "ipv6", "ip6", "10":
			return ruleset.One(ruleset.Number(ruleset.IPv6)), nil
		}
		return ruleset.Range{}, bad
	case ruleset.SourcePort, ruleset.DestinationPort:
		if v, err := strconv.ParseUint(text, 10, 16); err == nil {
			return ruleset.One(ruleset.Number(v)), nil
		}
		if v, ok := services[strings.ToLower(text)]; ok {
			return ruleset.One(ruleset.Number(v)), nil
		}
	}
	return ruleset.Range{}, bad
}

// services are names of /etc/services that rules are written with.
var services = map[string]uint64{"ftp-data": 20, "ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "domain": 53,
	"bootps": 67, "bootpc": 68, "tftp": 69, "http": 80, "www": 80, "kerberos": 88, "pop3": 110, "sunrpc": 111, "auth": 113,
	"ntp": 123, "epmap": 135, "msrpc": 135, "netbios-ns": 137, "netbios-dgm": 138, "netbios-ssn": 139, "imap": 143,
	"imap2": 143, "snmp": 161, "snmptrap": 162, "bgp": 179, "ldap": 389, "https": 443, "microsoft-ds": 445, "isakmp": 500,
	"syslog": 514, "submission": 587, "ipp": 631, "ldaps": 636, "imaps": 993, "pop3s": 995, "openvpn": 1194,
	"ms-sql-s": 1433, "nfs": 2049, "dhcpv6-client": 546, "dhcpv6-server": 547, "mysql": 3306, "rdp": 3389, "sip": 5060,
	"mdns": 5353, "postgresql": 5432, "route": 520, "rsync": 873, "printer": 515, "shell": 514, "login": 513,
	"exec": 512, "who": 513, "http-alt": 8080, "ipsec-nat-t": 4500, "ms-wbt-server": 3389, "socks": 1080, "squid": 3128,
	"x11": 6000, "nntp": 119, "gopher": 70, "finger": 79}
