package printed

import (
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// ParsePause parses "ethtool -a NIC". The lines on the negotiated result follow those on the
// configuration, under other keys. Nil: the driver has no flow control.
func ParsePause(text string) *host.Pause {
	var p host.Pause
	known := false // A driver without an answer prints an error, or only the title.
	for line := range lines(text) {
		key, value, _ := pair(line)
		switch key {
		case "Autonegotiate":
			p.Autoneg, known = value == "on", true
		case "RX":
			p.Rx = value == "on"
		case "TX":
			p.Tx = value == "on"
		}
	}
	if !known {
		return nil
	}
	return &p
}

// ParseEEE parses "ethtool --show-eee NIC": "EEE status: enabled - active", "Tx LPI: 17 (us)". Nil:
// the driver has no EEE.
func ParseEEE(text string) *host.EEE {
	var e host.EEE
	known := false
	for line := range lines(text) {
		key, value, _ := pair(line)
		switch key {
		case "EEE status":
			state, activity, _ := strings.Cut(value, " - ")
			// The third state is "not supported".
			known = state == "enabled" || state == "disabled"
			e.Enabled, e.Active = state == "enabled", activity == "active"
		case "Tx LPI":
			// "disabled" where the transmitter does not sleep.
			timer, _, on := strings.Cut(value, " (us)")
			if us, err := strconv.ParseUint(timer, 10, 32); on && err == nil {
				e.TxLPI, e.TxLPITimerInSeconds = true, float64(us)/1e6
			}
		}
	}
	if !known {
		return nil
	}
	return &e
}

// ParseFEC parses "ethtool --show-fec NIC", which sos runs since version 4.8. Nil: the driver has
// no forward error correction.
func ParseFEC(text string) *host.FEC {
	var f *host.FEC
	pairs(text, func(key, value string) {
		switch key {
		case "Configured FEC encodings", "Supported/Configured FEC encodings": // the latter since ethtool 6
			f = &host.FEC{}
			f.Auto = strings.Contains(value, "Auto")
			for _, w := range fecWords {
				if strings.Contains(" "+value+" ", " "+w.printed+" ") {
					f.Modes = append(f.Modes, w.mode)
				}
			}
		case "Active FEC encoding", "Active FEC encodings":
			for _, w := range fecWords {
				if f != nil && value == w.printed {
					f.Active = w.mode
				}
			}
		}
	})
	return f
}

// fecWords maps ethtool's words to those of package host. "None" means none configured, or an
// active one that is not known.
var fecWords = []struct{ printed, mode string }{{"BaseR", "baser"}, {"LLRS", "llrs"}, {"Off", "off"}, {"RS", "rs"}}

// ParsePrivateFlags parses "ethtool --show-priv-flags NIC": the driver's own switches by its names,
// with blanks before the colon. Nil: it has none.
func ParsePrivateFlags(text string) map[string]bool {
	flags := make(map[string]bool)
	for line := range lines(text) {
		key, value, ok := pair(line)
		// The title has nothing after its colon.
		if ok && key != "" && (value == "on" || value == "off") {
			flags[key] = value == "on"
		}
	}
	if len(flags) == 0 {
		return nil
	}
	return flags
}

// ParsePermanent parses "ethtool -P NIC". Empty: no address, as for software ("not set", all
// zeros).
func ParsePermanent(text string) string {
	for line := range lines(text) {
		if mac, ok := strings.CutPrefix(line, "Permanent address: "); ok && isMAC(mac) &&
			strings.Trim(mac, "0:") != "" {
			return mac
		}
	}
	return ""
}

// isMAC reports whether a text is a hardware address: six octets, or InfiniBand's twenty.
func isMAC(text string) bool {
	octets := strings.Split(text, ":")
	if len(octets) != 6 && len(octets) != 8 && len(octets) != 20 {
		return false
	}
	for _, o := range octets {
		if _, err := strconv.ParseUint(o, 16, 8); err != nil || len(o) != 2 {
			return false
		}
	}
	return true
}
