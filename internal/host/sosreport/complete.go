package sosreport

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// completeness names the files that ended early, and takes their last line away: half of a number
// is a number too. A command that sos stopped after its time left such a file, or an empty one.
func (c *collector) completeness(entries []hostfs.Entry) {
	// sos 2 cut the end of the last line from all outputs; then it says nothing.
	whole, cut := 0, 0
	for _, e := range entries {
		if output(e.Name) && len(e.Content) > 0 {
			if bytes.HasSuffix(e.Content, []byte("\n")) {
				whole++
			} else {
				cut++
			}
		}
	}
	var empty []string
	for i := range entries {
		e := &entries[i]
		table, isTable := strings.CutPrefix(e.Name, "proc/")
		isTable = isTable && (counts(table) || counts(table[strings.IndexByte(table, '/')+1:]))
		at := bytes.LastIndexByte(e.Content, '\n')
		switch {
		case e.Target != "":
			if strings.HasSuffix(e.Target, ".tailed") {
				c.say("%s: incomplete: sos kept only the end of a long output", e.Name)
			}
		case output(e.Name) && len(bytes.TrimSpace(e.Content)) == 0 && answers(e.Name):
			empty = append(empty, e.Name[strings.LastIndexByte(e.Name, '/')+1:])
		// A file of one line may have been written by hand.
		case at >= 0 && at < len(e.Content)-1 && (isTable || output(e.Name) && whole > cut):
			c.say("%s: incomplete: its last line has no end, and is left out", e.Name)
			e.Content = e.Content[:at+1]
		}
	}
	if len(empty) > 0 {
		c.say("empty outputs, so what they show is not known: %s", some(empty))
	}
}

// output reports whether a file has what a command printed.
func output(name string) bool {
	return strings.HasPrefix(name, "sos_commands/") || strings.HasPrefix(name, "sos_strings/")
}

// answers reports whether a file is of a command that prints something on every host: a value or an
// error. A list of routes may be empty.
func answers(name string) bool {
	_, command, _ := strings.Cut(name, "/networking/")
	return strings.HasPrefix(command, "ethtool_") || strings.HasPrefix(command, "ip_-d_address") ||
		strings.HasPrefix(command, "ip_-s_-d_link") || strings.HasPrefix(command, "nstat_")
}

// some lists the first of many names.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
