package bootconf

import (
	"path"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// ethtoolFlags are the options of ethtool(8) that set knobs, with the prefix of the knob's
// attribute.
var ethtoolFlags = map[string]string{
	"-G": "ring.", "--set-ring": "ring.", "-C": "coalesce.", "--coalesce": "coalesce.", "-L": "channels.",
	"--set-channels": "channels.",
	"-K":             "feature.", "--features": "feature.", "--offload": "feature.", "-A": "pause.",
	"--pause":          "pause.",
	"--set-priv-flags": "flag.", "--set-tunable": "tunable.",
}

// command reads one command line of a script, of ethtool(8), ip link or ifconfig, and returns what
// it sets on an interface. A variable in place of the interface matches every interface, because
// such scripts run once for each.
func command(line string, d Device) map[knob.ID]knob.Value {
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "", "exec ", "", "$name", d.Name, "%k",
		d.Name).Replace(line))
	if len(words) < 4 {
		return nil
	}
	set := map[knob.ID]knob.Value{}
	put := func(text string, v string) {
		if id, err := knob.ParseID(text); err == nil {
			if v == "true" || v == "false" {
				v = map[string]string{"true": "on", "false": "off"}[v]
			}
			set[id] = knob.Value(v)
		}
	}
	ours := func(name string) bool { return name == d.Name || strings.HasPrefix(name, "$") }
	switch path.Base(words[0]) {
	case "ethtool":
		prefix, ok := ethtoolFlags[words[1]]
		if !ok || !ours(words[2]) {
			return nil
		}
		for i := 3; i+1 < len(words); i += 2 {
			put(knob.KindEthtool+":"+d.Name+"/"+prefix+words[i], words[i+1])
		}
	case "ip", "ifconfig":
		for i, w := range words[:len(words)-1] {
			if attribute := map[string]string{"mtu": "mtu", "txqueuelen": "txqueuelen",
				"txqlen": "txqueuelen"}[w]; attribute != "" && anyWord(words[1:i], ours) {
				put(knob.KindLink+":"+d.Name+"/"+attribute, words[i+1])
			}
		}
	}
	return set
}

func anyWord(words []string, is func(string) bool) bool {
	for _, w := range words {
		if is(w) {
			return true
		}
	}
	return false
}
