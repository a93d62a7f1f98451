package host

// sysctls lists the settings below /proc/sys that affect the speed of a network, by path, because
// an interface's name in one may contain a dot. Those with a question mark exist only with some
// module, on some kernels or outside network namespaces: their absence is not reported.
// Documentation: ip-sysctl.rst, sysctl/net.rst, sysctl/vm.rst, nf_conntrack-sysctl.rst.
var sysctls = [...]string{
	// The scheduler moves threads and their memory closer together; both show as jitter of a pinned
	// sender.
	"kernel/numa_balancing?",
	"kernel/sched_autogroup_enabled?", // since 2.6.38

	// Most of net/core belongs to the machine and is visible only in its first network namespace.
	"net/core/bpf_jit_enable?", // while it is 0, filters on the packet path are interpreted
	// Microseconds that a reader spins on the receive queue instead of sleeping (3.11): latency for
	// CPU time.
	"net/core/busy_poll?",
	"net/core/busy_read?",
	"net/core/default_qdisc?", // of interfaces created from now on (3.12)
	"net/core/dev_weight?",    // packets that one poll of the backlog takes
	// When a backlog is half full, a flow that owns most of it loses packets (3.11, off by
	// default); softnet_stat counts them.
	"net/core/flow_limit_table_len?",
	"net/core/gro_normal_batch?", // packets handed up together (5.4)
	// The limits of one round of the receive softirq: packets, and microseconds since 4.12.
	// Reaching either is a time_squeeze.
	"net/core/netdev_budget?",
	"net/core/netdev_budget_usecs?",
	// Packets that wait for one CPU, for steered packets (RPS) and for devices without NAPI such as
	// loopback and veth.
	"net/core/netdev_max_backlog?",
	"net/core/netdev_tstamp_prequeue?", // whether a time stamp includes the wait in that queue
	"net/core/optmem_max?",             // bytes besides the data of a socket; zero-copy sends are accounted to it
	// Bytes. The maxima bound what a program requests with SO_RCVBUF and SO_SNDBUF; the kernel's
	// own sizing of TCP ignores them.
	"net/core/rmem_default?",
	"net/core/rmem_max?",
	"net/core/rps_sock_flow_entries?", // 0 keeps flow steering (RFS, scaling.rst) off
	"net/core/skb_defer_max?",         // buffers that return to the CPU that allocated them (5.19)
	"net/core/somaxconn",              // 128 until Linux 5.4, 4096 since
	"net/core/wmem_default?",
	"net/core/wmem_max?",

	// A strict filter (1) drops packets that arrive by another interface than the replies leave by,
	// as with two NICs in one network.
	"net/ipv4/conf/all/rp_filter",
	"net/ipv4/fib_multipath_hash_policy?", // whether ports choose among equal routes (4.12), or only addresses
	"net/ipv4/ip_forward",                 // also disables large receive offload on every NIC
	// The ports that connections start from bound the number of connections to one peer. The list
	// of reserved ones can have many kilobytes.
	"net/ipv4/ip_local_port_range",
	"net/ipv4/ip_local_reserved_ports",
	"net/ipv4/ip_no_pmtu_disc",
	"net/ipv4/ipfrag_high_thresh", // bytes of fragments waiting for the rest; beyond it further ones are dropped
	// Neighbours: a full table drops packets to every new neighbour.
	"net/ipv4/neigh/default/gc_thresh1?",
	"net/ipv4/neigh/default/gc_thresh2?",
	"net/ipv4/neigh/default/gc_thresh3?",

	// TCP, for both versions of IP. A setting without a version here is older than the kernels in
	// use for tuning.
	"net/ipv4/tcp_abort_on_overflow",
	"net/ipv4/tcp_adv_win_scale", // without effect since 6.6, which measures the share of payload per socket
	"net/ipv4/tcp_allowed_congestion_control?",
	"net/ipv4/tcp_autocorking", // since 3.14
	"net/ipv4/tcp_available_congestion_control",
	"net/ipv4/tcp_backlog_ack_defer?", // since 6.7
	"net/ipv4/tcp_base_mss",           // bytes at which the search of tcp_mtu_probing begins
	// Acknowledgements held back while packets are lost (4.18), in nanoseconds and in number: a
	// saving that can hurt fast links.
	"net/ipv4/tcp_comp_sack_delay_ns?",
	"net/ipv4/tcp_comp_sack_nr?",
	"net/ipv4/tcp_congestion_control", // per namespace since 4.15, before per machine
	"net/ipv4/tcp_dsack",
	"net/ipv4/tcp_early_retrans", // tail loss probes since 3.10
	"net/ipv4/tcp_ecn",
	"net/ipv4/tcp_fastopen",
	"net/ipv4/tcp_fin_timeout", // seconds
	"net/ipv4/tcp_frto",
	"net/ipv4/tcp_keepalive_time", // seconds
	// Bytes of one flow that may wait below TCP, in the queueing discipline and the NIC (TSQ, 3.6).
	"net/ipv4/tcp_limit_output_bytes",
	"net/ipv4/tcp_max_orphans?",
	"net/ipv4/tcp_max_reordering",
	// Half-open connections of a listener; somaxconn bounds the established ones that wait to be
	// accepted.
	"net/ipv4/tcp_max_syn_backlog",
	"net/ipv4/tcp_max_tw_buckets",
	"net/ipv4/tcp_mem?", // pages, for the whole machine: pressure from the second on, starvation from the third
	"net/ipv4/tcp_min_tso_segs",
	// If off, a receive buffer keeps its default size, for any maximum of tcp_rmem.
	"net/ipv4/tcp_moderate_rcvbuf",
	"net/ipv4/tcp_mtu_probing", // finds black holes where ICMP is filtered
	// 0: a new connection inherits the threshold of the last one to the same peer, good or bad
	"net/ipv4/tcp_no_metrics_save",
	"net/ipv4/tcp_notsent_lowat", // bytes
	// Percent of the estimated rate at which packets are paced, during slow start and after it.
	"net/ipv4/tcp_pacing_ca_ratio?",
	"net/ipv4/tcp_pacing_ss_ratio?",
	"net/ipv4/tcp_rcvbuf_low_rtt?",
	// Loss detection by time instead of counting duplicates (RACK, 4.4; RFC 8985), and the
	// reordering that counting tolerates.
	"net/ipv4/tcp_recovery",
	"net/ipv4/tcp_reordering",
	"net/ipv4/tcp_rmem", // bytes: minimum, default, maximum, including the kernel's overhead
	"net/ipv4/tcp_rto_min_us?",
	"net/ipv4/tcp_sack",
	"net/ipv4/tcp_shrink_window?", // against RFC 7323's advice, for hosts short of memory
	// 1 (the default) lets the congestion window decay in a pause, which slows request-and-answer
	// traffic each time.
	"net/ipv4/tcp_slow_start_after_idle",
	"net/ipv4/tcp_syncookies",
	"net/ipv4/tcp_thin_linear_timeouts",
	"net/ipv4/tcp_timestamps",   // 12 bytes of every packet
	"net/ipv4/tcp_tso_rtt_log?", // larger packets for near peers (5.18)
	"net/ipv4/tcp_tso_win_divisor",
	"net/ipv4/tcp_tw_reuse",
	"net/ipv4/tcp_window_scaling", // without it no window passes 64 KiB
	"net/ipv4/tcp_wmem",           // bytes: minimum, default, maximum
	"net/ipv4/udp_mem?",           // pages, of the whole machine
	"net/ipv4/udp_rmem_min",
	"net/ipv4/udp_wmem_min",

	// IPv6 has its own settings only where the protocol differs; the directory is absent without
	// it.
	"net/ipv6/conf/all/forwarding?",
	"net/ipv6/ip6frag_high_thresh?",
	"net/ipv6/neigh/default/gc_thresh3?",

	// Only with the connection tracking module. A full table drops new connections; with too few
	// buckets every packet walks a list.
	"net/netfilter/nf_conntrack_buckets?",
	"net/netfilter/nf_conntrack_max?",
	"net/netfilter/nf_conntrack_tcp_timeout_established?", // seconds

	// Memory, as far as packets compete for it: the kernel allocates buffers inside interrupts,
	// from the reserve of min_free_kbytes (KiB).
	"vm/dirty_background_bytes?",
	"vm/dirty_bytes?",
	"vm/min_free_kbytes",
	"vm/swappiness",
	"vm/zone_reclaim_mode?", // if on, a node frees its own memory before it takes a neighbour's, and packets wait
}
