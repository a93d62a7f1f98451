package persist

import (
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// Command returns the command line, as words for a shell, that sets a knob of an interface with the
// usual tools. False: no single command does.
func Command(id knob.ID, v knob.Value) ([]string, bool) {
	name, attribute, value := id.Interface(), id.Attribute(), string(v)
	group, rest, _ := strings.Cut(attribute, ".")
	ethtool := func(words ...string) ([]string, bool) {
		for i, w := range words {
			words[i] = quote(w)
		}
		return append([]string{"ethtool"}, words...), value != ""
	}
	switch id.Kind() {
	case knob.KindLink:
		if strings.HasSuffix(attribute, "_size") || attribute == "mtu" || attribute == "txqueuelen" {
			return []string{"ip", "link", "set", "dev", quote(name), attribute, quote(value)}, true
		}
	case knob.KindQdisc:
		if attribute == "root" {
			return []string{"tc", "qdisc", "replace", "dev", quote(name), "root", quote(value)}, true
		}
	case knob.KindEthtool:
		switch group {
		case "ring":
			return ethtool("-G", name, rest, value)
		case "channels":
			return ethtool("-L", name, rest, value)
		case "coalesce":
			return ethtool("-C", name, rest, value)
		case "feature":
			return ethtool("-K", name, rest, value)
		case "pause":
			return ethtool("-A", name, rest, value)
		case "flag":
			return ethtool("--set-priv-flags", name, rest, value)
		case "tunable":
			return ethtool("--set-tunable", name, rest, value)
		case "eee":
			return ethtool("--set-eee", name, "eee", value)
		case "fec":
			return ethtool(append([]string{"--set-fec", name, "encoding"}, strings.Split(value, ",")...)...)
		case "link":
			return linkMode(name, value)
		case "rss":
			if option := map[string]string{"key": "hkey", "function": "hfunc"}[rest]; option != "" {
				return ethtool("-X", name, option, value)
			}
		case "rxhash":
			return ethtool("-N", name, "rx-flow-hash", rest, value)
		}
	}
	return nil, false
}

// linkMode puts negotiation, or a forced speed, into the words of ethtool -s. Single modes to be
// offered are for the user to write.
func linkMode(name, value string) ([]string, bool) {
	if value == "auto" {
		return []string{"ethtool", "-s", quote(name), "autoneg", "on"}, true
	}
	speed, duplex, ok := strings.Cut(value, "/")
	if !ok || speed == "" || strings.Trim(speed, "0123456789") != "" || duplex != "full" && duplex != "half" {
		return nil, false
	}
	return []string{"ethtool", "-s", quote(name), "speed", speed, "duplex", duplex, "autoneg", "off"}, true
}

// quote makes one word of a shell out of a text.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%=", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
