// Package knob names every tunable of a host, describes it, and defines what reading and writing it
// means.
//
// # Model
//
// An [ID] names one tunable: its kind, then the field's own name; [ParseID] returns the one
// canonical spelling. A [Value] is the text of its setting. A [Definition] describes a tunable or a
// family of them: what it does, form and range, the default and the release it was read on, its
// scope, what changing it disturbs, when a change takes effect, the symptom that calls for it, and
// its risk. The [Catalog] holds all definitions; it is data (catalogue/KIND.json), not code. A
// [Backend] reads and writes: package live the running system, [Memory] a host in a test; [DryRun]
// shows what would be written. One suite (package knobtest) holds for all of them.
//
// # Names
//
//	sysctl:net.ipv4.tcp_rmem                  file /proc/sys/net/ipv4/tcp_rmem
//	sysctl:net.ipv4.conf.eth0/100.rp_filter   file /proc/sys/net/ipv4/conf/eth0.100/rp_filter:
//	                                          as in sysctl(8), a dot inside a path element
//	                                          is written as a slash
//	link:eth0/mtu, link:eth0/txqueuelen
//	ethtool:eth0/feature.rx-gro               feature names are the kernel's;
//	                                          tso, gso, gro, lro, sg, rx and tx are understood
//	ethtool:eth0/ring.rx                      also ring.tx, channels.{combined,rx,tx},
//	                                          pause.{rx,tx,autoneg}, eee
//	ethtool:eth0/coalesce.rx-usecs            interrupt moderation in the words of ethtool(8) -C
//	ethtool:eth0/flag.rx_cqe_compress         private flags of the driver; some have blanks
//	                                          in their names
//	ethtool:eth0/rss.indirection              also rss.key, rss.function; rxhash.{tcp4,udp4,…}:
//	                                          how flows spread over queues
//	ethtool:eth0/link.mode                    negotiation or a forced speed: auto,
//	                                          auto 100baseT/Full, 100/full;
//	                                          also fec and tunable.rx-copybreak
//	route:10.0.0.0/8/initcwnd                 a route of the main table: prefix, address,
//	                                          or "default" (IPv4); "::/0" is the IPv6 default
//	queue:eth0/rx-0/rps_cpus                  files of a queue in sysfs; bql_limit_max and
//	                                          bql_limit_min are those of byte_queue_limits
//	irq:45/affinity                           the requested set; effective_affinity is
//	                                          where the interrupts go
//	qdisc:eth0/root                           the kind of the discipline at the root
//	qdisc:eth0/fq.flow_limit                  a parameter of it, KIND.NAME in the words of
//	                                          tc(8); under mq that of all queues
//	module:e1000e/copybreak                   a module parameter; a dash becomes an
//	                                          underscore, as in the kernel
//	cpu:3/resume_latency                      also scaling_governor; cpu:all/dma_latency is read-only
//	pci:0000:03:00.0/l1_aspm                  whether the link of a PCIe device may sleep,
//	                                          and how deeply
//	block:sda/read_ahead_kb                   how far the kernel reads a disk ahead of a program
//	nfs:/mnt/x/rsize                          an option of a mount
//	ifconfig:em0/tso4                         FreeBSD: an option of ifconfig(8)
//	loader:hw.em.max_interrupt_rate           FreeBSD: a tunable in /boot/loader.conf
//	ipadm:tcp/send_buf                        illumos: a property of a protocol; names of ndd(8)
//	                                          are understood
//	dladm:net0/mtu                            illumos: a property of a link
//	driver:e1000g/0/MaxFrameSize              illumos: a number in /kernel/drv/e1000g.conf
//	registry:HKLM\KEY\NAME                    Windows: a value of the registry, or absent
//	nettcp:InternetCustom/MinRtoMs            Windows: a TCP setting of a template
//	adapter:Ethernet/ndis.ReceiveBuffers      Windows: an advanced property; ndis. stands for
//	                                          the star of standard keywords
//	named:/etc/bind/named.conf/prefetch       an option of BIND's configuration file; unbound and
//	                                          kresd are those of Unbound and Knot Resolver
//
// # Values
//
// Numbers are decimal; several are separated by one blank; sysctl switches are 0 and 1, features on
// and off; an unset route metric is 0. Bytes, microseconds, packets: the unit is the kernel's, and
// the definition states it.
//
// # Sources
//
// Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/net.rst, ip-route(8),
// ethtool(8), nfs(5); defaults were read on Linux 6.18 where the definition says so.
//
// # Limits
//
// The definitions of FreeBSD, illumos and Windows are built only into programs for these systems,
// which have those of Linux too. Only a backend knows which knobs a host has, and how it rounds a
// value. Only package journal may call Write.
package knob
