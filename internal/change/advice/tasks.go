package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// A task of a configuration tool names the command that it runs, or the line that it puts into a
// file, behind a key of YAML:
//
//   - ansible.builtin.command: ethtool -G eth0 rx 4096
//   - lineinfile:
//     line: net.ipv4.ip_forward = 1

var (
	taskLine = pattern.New(`^(?:-\s+)?(?:[a-z]\w*\.)*` +
		`(?:command|shell|cmd|raw|win_command|win_shell|line|run|exec|args)\s*:\s+["']?([^\s"'|>\[{].*?)["']?$`)
	// ofOpenWrt is a command for an option of /etc/config/network or /etc/config/firewall.
	ofOpenWrt = pattern.New(`^uci\s.*\bset\s+\S+\.(packet_steering|steering_flows|flow_offloading(?:_hw)?)=["']?(\w+)`)
	// cronLine is a line of crontab(5), whose user may be missing.
	cronLine = pattern.New(`^(?:@(?:reboot|hourly|daily)|[\d*/,-]+(?:\s+[\d*/,-]+){4})\s+(?:root\s+)?([a-z/]\S*\s.*)$`)
	// ranByElement is a command in an element of XML, as an answer file of Windows has it.
	ranByElement = pattern.New(`^<(?:\w+:)?\w+[^<>]*>\s*(?:cmd(?:\.exe)?\s+/c\s+)?([^<>]+?)\s*</[\w:]+>$`)
	// plainWords is a command in a list without quotes, as cloud-init takes it: - [ sysctl, -w, a=1 ].
	plainWords = pattern.New(`^-\s*\[\s*([a-z/][^\[\]"',]*(?:,[^\[\]"',]+)+)\]$`)
)

// task reads the command or the line of such a task.
func (r *reader) task(text string) bool {
	if m := plainWords.FindStringSubmatch(text); m != nil {
		words := strings.Split(m[1], ",")
		for i, w := range words {
			words[i] = strings.TrimSpace(w)
		}
		return r.commands([]command{{words: words}})
	}
	if m := ranByElement.FindStringSubmatch(text); m != nil && settingCommands.MatchString(m[1]) {
		return r.commands(splitCommands(m[1]))
	}
	if m := ofOpenWrt.FindStringSubmatch(text); m != nil {
		r.add(Linux, "uci:"+m[1], m[2])
		return true
	}
	if m := cronLine.FindStringSubmatch(text); m != nil {
		return r.commands(splitCommands(m[1]))
	}
	m := taskLine.FindStringSubmatch(text)
	return m != nil && (r.commands(splitCommands(m[1])) || r.assignment(m[1]) || r.moduleOptions(m[1]))
}
