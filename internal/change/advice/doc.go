// Package advice reads tuning advice in its common forms, and judges whether each setting in it is
// still right.
//
// # Model
//
// [Parse] turns a text into [Setting] values: name, value, line, and the system that the name
// belongs to. It makes no judgements. A [Target] judges them: each [Judgement] has one [Verdict],
// the reason, the release since which it holds, today's form of the same intent, and a source. The
// package executes nothing and reads nothing of the host, except present values when Target.Present
// is given.
//
// Texts may mix forms freely; the parser recognises a form by its content: sysctl.conf and
// sysctl.d, loader.conf and rc.conf, lines of a kernel configuration, modprobe.d, parameters of
// modules in GRUB_CMDLINE_LINUX, shell commands (sysctl, ethtool, ip, ifconfig, route, tc,
// mii-tool, modprobe, mount, echo into /proc and /sys, ndd, ipadm, dladm, nmcli) with or without a
// prompt, through ssh or another shell, in units of systemd, in strings and lists of words of a
// program, or put into a script by echo, init.rc of Android, files of NetworkManager,
// systemd.link(5), interfaces(5) and netplan, driver files of Solaris, .reg files, reg add, netsh,
// PowerShell, named.conf, unbound.conf, TuneD profiles, and bare names that can denote only one
// setting. A name and its value may be a pair of YAML, JSON, Nix, Puppet or Chef, two entries of
// one item ("name: …", "value: …"), or a row of a table; backquotes and HTML around them are taken
// off. Lists of words for a command may go on for several lines, and tasks of configuration tools
// name a command or a line. Loops of such tools and of programs are written out where their items
// are, and files of the kernel that a program writes are read. Parts of a setting may stand on
// lines above it: the tree of a hash of Chef, the keyword of a resource of DSC, the file that a
// program has opened. Of Windows,
// tables and loops of PowerShell (also over the keys of a table, or below a key) and batch files,
// functions of batch files, INF files, security templates, elements of XML, and tables and
// sentences of pages are read too; entries that take back what they set are left out. In a text
// about the registry a last reader takes what no form has: the name of a value and a number that
// are arguments of one call, items of one tuple or fields of one object, in any language. The
// parser skips a line of no known form if it is a sentence, and reports it as Unknown if it looks
// like a setting.
//
// The names of FreeBSD, NetBSD, OpenBSD and macOS overlap. What only one of them has decides for
// the whole text; without it the names are FreeBSD's. A page whose heads name several systems is
// judged section by section. OpenBSD is recognised and not judged.
// Properties of Android (setprop net.…) are listed as not understood.
//
// A verdict comes from the first of these that applies: rules of the embedded facts that ignore the
// value (removed, without effect), the range in the catalogue of package knob, rules that use the
// value, and the comparison with the default of the release. A value that is a variable or a
// placeholder is Unknown unless a rule ignores the value. A name that Linux does not have, in a
// tree whose names are all known, is Ignored, and the reason names the setting that it resembles.
//
// # Names and units
//
// Settings that package knob can name have its names and units. Other settings have names in the
// same style: ndd:tcp/tcp_max_buf, driver:e1000g/MaxFrameSize, netsh:tcp/rss, option:HZ (a FreeBSD
// kernel), ifconfig:em0/polling, named:max-cache-size. A star is an interface that the text does
// not name.
//
// # Sources
//
// Every rule has one: kernel documentation and commits, manual pages, Microsoft's and Oracle's
// documentation. The files are facts/*.json for rules, each about the system in its name, and
// facts/*.tsv for the settings of FreeBSD, macOS, Solaris and Windows, and of modules of Linux,
// with their defaults and the direction in which a change is wrong.
//
// # Limits
//
// The package does not guess the intent of a line. A command that sets something unknown here (a
// key of a receive hash, a CPU frequency governor) is in Advice.Unread and gets the verdict
// Unknown, so that the reader can distinguish unchecked settings from correct ones. Rules of
// firewalls, classes and filters of tc, and parameters of disciplines are programs and are skipped.
//
// Two lines for one setting are two settings: a page may have one for each kind of host. The
// judgement of the first then notes that the last one applies, as it does for sysctl(8), for a
// shell and for regedit.
//
// Distributions backport changes to older kernels, so a release is less informative for them than
// for kernel.org. Shell is not executed: a variable that the text gives one literal value, the
// items of a loop that are written out, and the arguments of a function of the text are put in
// their places; other variables keep their names, and every branch counts as executed. What loops
// and functions become is bounded (4 MiB, 64 items, calls three deep). Package powershell does the
// same for scripts of PowerShell, with their tables and the keys below a key. Of PowerShell the
// cmdlets for TCP, IP, NICs, SMB and the registry are read; other Set- cmdlets of the network are
// listed as not understood. HP-UX and AIX (no -o, chdev) are not read.
package advice
