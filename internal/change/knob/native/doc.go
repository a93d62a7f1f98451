// Package native reads and writes the knobs of FreeBSD, illumos, Solaris and Windows.
//
// # Model
//
// A [Host] is the knob.Backend of one such system: [FreeBSD], [Solaris] (illumos too) or [Windows].
// It works through a layer: the system's programs (package tool), the sysctls of a FreeBSD kernel
// (package mib), the registry (package registry) and files. The real layers are those of the system
// that linerate was built for. In tests they are recordings of other machines, so that one suite
// (package knobtest) holds for all systems.
//
// No program is believed: after each write the host reads the value again, and a write that changed
// nothing is an error whatever the program returned.
//
//	sysctl     FreeBSD   by MIB
//	ifconfig   FreeBSD   ifconfig -m IF; ifconfig IF tso4, -tso4, mtu N
//	loader     FreeBSD   a marked block at the end of /boot/loader.conf
//	ipadm      illumos   ipadm show-prop -c, set-prop -t; ndd where there is no ipadm
//	dladm      illumos   dladm show-linkprop -c, set-linkprop -t
//	driver     illumos   /kernel/drv/NAME.conf
//	registry   Windows   values below HKEY_LOCAL_MACHINE; one that does not exist is "absent"
//	nettcp     Windows   Get-NetTCPSetting, as JSON
//	adapter    Windows   Get-NetAdapterAdvancedProperty, as JSON
//
// # Units
//
// Those of the systems, as the definition of a knob states them.
//
// # Sources
//
// ifconfig(8), loader.conf(5), sysctl(3); ipadm(8), dladm(8), driver.conf(5); learn.microsoft.com
// for the NetAdapter and NetTCPIP modules. The recordings in testdata name theirs.
//
// # Limits
//
// Errors of ifconfig, ipadm and dladm are classified by their words in the language C. Only
// package journal may call Write.
package native
