// Package advice reads tuning advice as people pass it on, and says of every setting in it whether
// it is still right.
//
// # Model
//
// [Parse] turns a text into [Setting] values: name, value, line, and the system that the name
// belongs to. It knows no verdicts. A [Target] judges them: each [Judgement] has one [Verdict], the
// reason, the release since which it holds, today's form of the same wish, and a source. Nothing is
// executed and nothing of the host is read, except present values when Target.Present is given.
//
// Texts may mix forms freely, and forms are recognised by their content: sysctl.conf and sysctl.d,
// loader.conf and rc.conf, lines of a kernel configuration, modprobe.d, parameters of modules in
// GRUB_CMDLINE_LINUX, shell commands (sysctl, ethtool, ip, ifconfig, route, tc, mii-tool, modprobe,
// mount, echo into /proc and /sys, ndd, ipadm, dladm) with or without a prompt, driver files of
// Solaris, .reg files, reg add, netsh, PowerShell, named.conf, and bare names that stand for one
// setting alone. A line that is of no form is left out when it is a sentence, and reported as
// Unknown when it looks like a setting.
//
// A verdict comes from three places, in this order: rules of the embedded facts that do not look at
// the value (removed, without effect), the range in the catalogue of package knob, rules that look
// at the value, and the comparison with the default of the release.
//
// # Names and units
//
// Settings that package knob can name have its names and units. Others have names in the same
// manner: ndd:tcp/tcp_max_buf, driver:e1000g/MaxFrameSize, netsh:tcp/rss, option:HZ (a FreeBSD
// kernel), ifconfig:em0/polling, named:max-cache-size. A star stands for an interface that the text
// does not name.
//
// # Sources
//
// Every rule carries its own: kernel documentation and commits, manual pages, Microsoft's and
// Oracle's documentation. The files are facts/*.json.
//
// # Limits
//
// What a line was meant to do is not guessed. A command that sets something of which nothing is
// known here (a key of a receive hash, a governor of the processor) is in Advice.Unread and comes
// out as Unknown, so that what was not checked can be told from what is fine. Rules of firewalls,
// classes and filters of tc, and parameters of disciplines are programs and are left out.
//
// Two lines for one setting are two settings: a page may have one for each kind of host. The first
// then says that the last counts, as it does for sysctl(8), for a shell and for regedit.
//
// Distributions carry changes back into older kernels, so a release tells less about theirs than
// about those of kernel.org. Shell is read a line at a time and not interpreted: variables stay
// what they are called, and branches count as taken. PowerShell is read only as far as it sets what
// netsh and the registry set. HP-UX and AIX (no -o, chdev) are not read.
package advice
