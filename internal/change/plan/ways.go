package plan

// Files that several ways share.
var (
	sysctlConf = File{Path: "/etc/sysctl.conf", Text: "%a=%v\n"}
	oldLoader  = File{Path: "/boot/loader.conf", Text: "%a=\"%v\"\n"}
	newLoader  = File{Path: "/boot/loader.conf.d/linerate-plan.conf", Own: true, Text: "%a=\"%v\"\n"}
)

// Notes that several ways share.
const (
	noteLoader = "Its line leaves the file below; the old value holds after a reboot."
	noteGrows  = "The kernel takes only larger values while it runs: the old one is back after a reboot."
	noteKernel = "Boot the old kernel, /boot/kernel.old, again."
)

// restart is what a value takes that a socket reads when it is made or listens: servers have theirs
// since they started. Source: solisten_proto and udp_attach of FreeBSD.
const restart = "restart the servers: a socket that exists keeps its old value"

// freebsdWays are those of FreeBSD 13 and later. Source: sysctl.conf(5), loader.conf(5),
// rc.conf(5), sysrc(8), ifconfig(8); for what only the loader sets, the pages of the drivers,
// iflib(4) and sysctl -aT.
var freebsdWays = []way{
	{kind: "ifconfig", read: "ifconfig %o", set: "ifconfig %o %s\nsysrc ifconfig_%o+=\" %s\"",
		undo: "ifconfig %o %u\nsysrc ifconfig_%o-=\" %s\"", effect: AtOnce},
	{kind: "link", read: "ifconfig %o", set: "ifconfig %o mtu %v\nsysrc ifconfig_%o+=\" mtu %v\"",
		undo:  "ifconfig %o mtu %w\nsysrc ifconfig_%o-=\" mtu %v\"",
		reset: "ifconfig %o mtu 1500\nsysrc ifconfig_%o-=\" mtu %v\"", effect: LinkDown},
	{kind: "sysctl", prefix: "hw.", read: "kenv -q %a", files: [2]File{newLoader}, note: noteLoader,
		effect: AtReboot},
	{kind: "sysctl", prefix: "dev.em.", read: "sysctl %a", set: "sysctl %a=%v", undo: "sysctl %a=%w",
		files: [2]File{sysctlConf}, effect: AtOnce},
	{kind: "tunable", read: "kenv -q %a", files: [2]File{newLoader}, note: noteLoader, effect: AtReboot},
	{kind: "sysctl", prefix: "net.inet.tcp.cc.", read: "sysctl %a", set: "kldload -n cc_%v\nsysctl %a=%v",
		undo: "sysctl %a=%w", files: [2]File{sysctlConf, {Path: newLoader.Path, Own: true, Text: "cc_%v_load=\"YES\"\n"}},
		effect: NewConnections},
	{kind: "sysctl", prefix: "kern.ipc.soacceptqueue", read: "sysctl %a", set: "sysctl %a=%v", undo: "sysctl %a=%w",
		byHand: restart, files: [2]File{sysctlConf}, effect: NewConnections},
	{kind: "sysctl", prefix: "net.inet.udp.", read: "sysctl %a", set: "sysctl %a=%v", undo: "sysctl %a=%w",
		byHand: restart, files: [2]File{sysctlConf}, effect: NewConnections},
	{kind: "sysctl", prefix: "net.inet.ip.", read: "sysctl %a", set: "sysctl %a=%v", undo: "sysctl %a=%w",
		files: [2]File{sysctlConf}, effect: AtOnce},
	{kind: "sysctl", read: "sysctl %a", set: "sysctl %a=%v", undo: "sysctl %a=%w", files: [2]File{sysctlConf},
		effect: NewConnections},
}

// oldFreeBSDWays are those of FreeBSD 5 and 6.
var oldFreeBSDWays = []way{
	{kind: "option", prefix: "DEVICE_POLLING", read: "sysctl kern.polling", note: noteKernel,
		byHand: "options %a in the configuration of the kernel, then make buildkernel installkernel and a reboot",
		effect: AtReboot},
	{kind: "ifconfig", read: "ifconfig %o", set: "ifconfig %o %s", undo: "ifconfig %o %u",
		byHand: "%s, at the end of ifconfig_%o in /etc/rc.conf", effect: AtOnce},
	{kind: "link", read: "ifconfig %o", set: "ifconfig %o mtu %v", undo: "ifconfig %o mtu %w",
		reset:  "ifconfig %o mtu 1500",
		byHand: "mtu %v, at the end of ifconfig_%o in /etc/rc.conf", effect: LinkDown},
	{kind: "sysctl", prefix: "kern.hz", read: "kenv -q %a", files: [2]File{oldLoader}, note: noteLoader,
		effect: AtReboot},
	{kind: "sysctl", prefix: "kern.ipc.nmbclusters", read: "sysctl %a", files: [2]File{oldLoader}, note: noteGrows,
		effect: AtReboot},
	{kind: "sysctl", prefix: "kern.polling.", read: "sysctl %a", set: "sysctl %a=%v", undo: "sysctl %a=%w",
		files: [2]File{sysctlConf}, effect: AtOnce},
	{kind: "sysctl", read: "sysctl %a", set: "sysctl %a=%v", undo: "sysctl %a=%w", files: [2]File{sysctlConf},
		effect: NewConnections},
}

// The commands around a change of the MTU. The interface must come up again, also if it failed.
const (
	linkDown = "ipadm disable-if -t %o\n"
	linkUp   = " || echo '%o: mtu not changed' >&2\nipadm enable-if -t %o"
)

// solarisWays are those of Solaris and illumos: ndd up to Solaris 10, ipadm and dladm from 11 on.
// What ipadm and dladm set is kept over a restart. Source: ndd(8), ipadm(8), dladm(8),
// driver.conf(5), hostname.if in ifconfig(8).
var solarisWays = []way{
	{kind: "ndd", read: "ndd -get /dev/%o %a", set: "ndd -set /dev/%o %a %v", undo: "ndd -set /dev/%o %a %w",
		files:  [2]File{{Path: "/etc/rc2.d/S99linerate-plan", Own: true, Mode: "0744", Text: "ndd -set /dev/%o %a %v\n"}},
		effect: NewConnections},
	{kind: "ipadm", read: "ipadm show-prop -p %a %o", set: "ipadm set-prop -p %a=%v %o",
		undo: "ipadm set-prop -p %a=%w %o", reset: "ipadm reset-prop -p %a %o", effect: NewConnections},
	{kind: "dladm", prefix: "mtu", read: "dladm show-linkprop -p %a %o",
		set:   linkDown + "dladm set-linkprop -p %a=%v %o" + linkUp,
		undo:  linkDown + "dladm set-linkprop -p %a=%w %o" + linkUp,
		reset: linkDown + "dladm reset-linkprop -p %a %o" + linkUp,
		note: "A link in use answers \"try again later\": the interface is taken down and up again. Not over this link, " +
			"unless at(1) runs the undo.", effect: LinkDown},
	{kind: "dladm", read: "dladm show-linkprop -p %a %o", set: "dladm set-linkprop -p %a=%v %o",
		undo: "dladm set-linkprop -p %a=%w %o", reset: "dladm reset-linkprop -p %a %o", effect: AtOnce},
	{kind: "driver", read: "grep %a /kernel/drv/%o.conf", byHand: "%a=%i; in /kernel/drv/%o.conf, and a reboot",
		note: "Write the old line of /kernel/drv/%o.conf again, and reboot.", effect: AtReboot},
	{kind: "link", read: "ifconfig %o", byHand: "mtu %v, behind the address in /etc/hostname.%o, and a reboot",
		note: "Take the words out of /etc/hostname.%o again, and reboot.", effect: AtReboot},
}

// windowsWays are those of Windows. All of them are kept over a restart. Source:
// learn.microsoft.com for reg, netsh interface tcp and Set-NetAdapterAdvancedProperty.
var windowsWays = []way{
	{kind: "registry", read: `reg query "%o" /v %a`, set: `reg add "%o" /v %a /t REG_DWORD /d %v /f`,
		undo: `reg add "%o" /v %a /t REG_DWORD /d %w /f`, reset: `reg delete "%o" /v %a /f`,
		note:   "The value is absent by default, and undo deletes it; if reg query showed one, set that again.",
		effect: AtReboot},
	{kind: "adapter", read: "Get-NetAdapterAdvancedProperty -Name '%o' -RegistryKeyword '%a'",
		set:    "Set-NetAdapterAdvancedProperty -Name '%o' -RegistryKeyword '%a' -RegistryValue %v",
		undo:   "Set-NetAdapterAdvancedProperty -Name '%o' -RegistryKeyword '%a' -RegistryValue %w",
		note:   "The adapter restarts both times. The value to go back to is the one that was kept; %w is the usual default.",
		effect: LinkDown},
	{kind: "netsh", prefix: "heuristics", read: "netsh int tcp show heuristics", set: "netsh int tcp set heuristics %v",
		undo: "netsh int tcp set heuristics %w", effect: AtOnce},
	{kind: "netsh", read: "netsh int tcp show global", set: "netsh int tcp set global %a=%v",
		undo: "netsh int tcp set global %a=%w", effect: AtOnce},
}
