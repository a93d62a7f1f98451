package reporttest

import (
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/report"
)

// judgedAdvice is advice of every verdict, with a line that tries to control the terminal.
func judgedAdvice() *report.AdviceDocument {
	return report.NewCheckAdvice(Envelope(), "old.conf", 9, "", map[string]string{"linux": "6.18.44"},
		[]advice.Judgement{
			{Setting: advice.Setting{Line: 1, Text: "net.ipv4.tcp_sack=1", OS: advice.Linux,
				Knob: "sysctl:net.ipv4.tcp_sack", Value: "1"}, For: advice.Linux,
				Verdict: advice.NowDefault, Why: "That is the default, since Linux 2.2.", Today: "leave it out",
				Source: "tcp(7)", Default: "1"},
			{Setting: advice.Setting{Line: 2, Text: "net.ipv4.tcp_rmem = 4096 87380 4194304", OS: advice.Linux,
				Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 87380 4194304"},
				For: advice.Linux, Verdict: advice.Harmful,
				Why: "Lowers the limit of automatic growth of the receive window: 4194304, where the " +
					"default since Linux 6.16 is 33554432.",
				Since: "6.16", Today: "leave it out", Source: "commit 572be9bf9d0d", Default: "4096 131072 33554432",
				Current: "4096 131072 33554432"},
			{Setting: advice.Setting{Line: 4, Text: "\x1b[2Jx = y"}, For: advice.Linux, Verdict: advice.Unknown,
				Why: "Looks like a setting, in an unknown form."},
			{Setting: advice.Setting{Line: 5, Text: "options DEVICE_POLLING", OS: advice.FreeBSD,
				Knob: "option:DEVICE_POLLING"}, For: advice.FreeBSD,
				Verdict: advice.Ignored, Why: "Builds, and cannot be used.", Since: "12.0", Today: "dev.em.N.itr",
				Source: "polling(4)"},
			{Setting: advice.Setting{Line: 6, Text: "ethtool -G eth0 rx 4096", OS: advice.Linux,
				Knob: "ethtool:eth0/ring.rx", Value: "4096"}, For: advice.Linux,
				Verdict: advice.StillRight, Why: "Helps while the card's counter of missed frames rises.",
				Source: "ethtool(8)"},
			{Setting: advice.Setting{Line: 9, Text: "net.ipv4.tcp_tw_recycle=1", OS: advice.Linux,
				Knob: "sysctl:net.ipv4.tcp_tw_recycle", Value: "1"}, For: advice.Linux,
				Verdict: advice.Removed, Why: "Gone.", Since: "4.12", Today: "leave it out",
				Source: "commit 4396e46187ca"},
		})
}
