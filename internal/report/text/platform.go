package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/owner"
)

// ownersText names the other programs that set knobs of this host: first those that run, then those
// that write at boot.
func ownersText(owners []owner.Owner) string {
	var running, boot []string
	for _, o := range owners {
		switch {
		case o.Profile != "":
			running = append(running, o.Name+" ("+o.Profile+")")
		case o.Running:
			running = append(running, o.Name)
		default:
			boot = append(boot, o.Name)
		}
	}
	var parts []string
	if len(running) > 0 {
		parts = append(parts, "managed by "+strings.Join(running, ", "))
	}
	if len(boot) > 0 {
		parts = append(parts, "configured by "+strings.Join(boot, ", "))
	}
	return strings.Join(parts, "; ")
}

// processorText describes the processors and how they save power, on one line. Where processors
// differ, it counts each kind.
func processorText(cpus []host.CPU, idle *host.Idle) string {
	if len(cpus) == 0 {
		return ""
	}
	each := func(say func(host.CPU) string) string {
		counts := make(map[string]int)
		var words []string
		for _, c := range cpus {
			if word := say(c); word != "" {
				if counts[word]++; counts[word] == 1 {
					words = append(words, word)
				}
			}
		}
		if len(words) > 1 {
			for i, word := range words {
				words[i] = fmt.Sprintf("%d × %s", counts[word], word)
			}
		}
		return strings.Join(words, ", ")
	}
	parts := []string{each(func(c host.CPU) string { return c.Model })}
	if governor := each(func(c host.CPU) string { return c.Governor }); governor != "" {
		parts = append(parts, "governor "+governor)
	}
	if limit := each(func(c host.CPU) string {
		if c.LimitMHz > 0 && c.MaxMHz > c.LimitMHz {
			return fmt.Sprintf("limited to %d of %d MHz", c.LimitMHz, c.MaxMHz)
		}
		return ""
	}); limit != "" {
		parts = append(parts, limit)
	}
	if text := idleText(idle); text != "" {
		parts = append(parts, text)
	}
	var most host.CPU
	for _, c := range cpus {
		if c.StealRatio > most.StealRatio {
			most = c
		}
	}
	if most.StealRatio >= 0.01 {
		parts = append(parts, fmt.Sprintf("up to %.0f %% stolen by the hypervisor (CPU %d)",
			100*most.StealRatio, most.ID))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// idleText names the deepest idle state that a processor may use: a packet may have to wait for its
// wake-up.
func idleText(idle *host.Idle) string {
	if idle == nil {
		return ""
	}
	for _, s := range slices.Backward(idle.States) {
		if s.Disabled == "" && s.LatencySeconds > 0 {
			return fmt.Sprintf("sleeps down to %s (%s to wake)", s.Name, unit.FormatSeconds(s.LatencySeconds))
		}
	}
	return ""
}

// tablesText lists the tables that have a limit and at least one entry, the fullest first.
func tablesText(tables []host.Table) string {
	share := func(t host.Table) float64 { return float64(t.Entries) / float64(max(t.Limit, 1)) }
	var parts []string
	shown := slices.DeleteFunc(slices.Clone(tables), func(t host.Table) bool { return t.Limit == 0 || t.Entries == 0 })
	sorting.StableFunc(shown, func(a, b host.Table) int {
		switch {
		case share(a) > share(b):
			return -1
		case share(a) < share(b):
			return 1
		}
		return 0
	})
	for _, t := range shown {
		parts = append(parts, fmt.Sprintf("%s %d of %d", t.Name, t.Entries, t.Limit))
	}
	return strings.Join(parts, " · ")
}

// nfsOptions are the options of a mount that affect its speed.
var nfsOptions = []string{"vers", "proto", "rsize", "wsize", "nconnect", "max_connect", "sync", "noac", "timeo",
	"retrans", "lookupcache", "fsc", "xprtsec"}

// mountText returns the options of a mount that affect its speed, in the kernel's order.
func mountText(options string) string {
	var shown []string
	for option := range strings.SplitSeq(options, ",") {
		name, _, _ := strings.Cut(option, "=")
		if slices.Contains(nfsOptions, name) {
			shown = append(shown, option)
		}
	}
	return strings.Join(shown, " ")
}
