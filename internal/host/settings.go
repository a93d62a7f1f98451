package host

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// sysctls are the settings below /proc/sys that bear on the speed of a network. Those marked with a question mark exist only with
// some module, on some kernels or outside of network namespaces: their absence is not worth a sentence. Kernel
// versions: where a name came late or means nothing any more. Documentation: ip-sysctl.rst, sysctl/net.rst, sysctl/vm.rst.
var sysctls = strings.Fields(`
	kernel/numa_balancing?
	kernel/sched_autogroup_enabled?

	net/core/bpf_jit_enable?
	net/core/busy_poll?
	net/core/busy_read?
	net/core/default_qdisc?
	net/core/dev_weight?
	net/core/flow_limit_table_len?
	net/core/gro_normal_batch?
	net/core/netdev_budget?
	net/core/netdev_budget_usecs?
	net/core/netdev_max_backlog?
	net/core/netdev_tstamp_prequeue?
	net/core/optmem_max?
	net/core/rmem_default?
	net/core/rmem_max?
	net/core/rps_sock_flow_entries?
	net/core/skb_defer_max?
	net/core/somaxconn
	net/core/wmem_default?
	net/core/wmem_max?

	net/ipv4/conf/all/rp_filter
	net/ipv4/fib_multipath_hash_policy?
	net/ipv4/ip_forward
	net/ipv4/ip_local_port_range
	net/ipv4/ip_local_reserved_ports
	net/ipv4/ip_no_pmtu_disc
	net/ipv4/ipfrag_high_thresh
	net/ipv4/neigh/default/gc_thresh1?
	net/ipv4/neigh/default/gc_thresh2?
	net/ipv4/neigh/default/gc_thresh3?
	net/ipv4/tcp_abort_on_overflow
	net/ipv4/tcp_adv_win_scale
	net/ipv4/tcp_allowed_congestion_control?
	net/ipv4/tcp_autocorking
	net/ipv4/tcp_available_congestion_control
	net/ipv4/tcp_backlog_ack_defer?
	net/ipv4/tcp_base_mss
	net/ipv4/tcp_comp_sack_delay_ns?
	net/ipv4/tcp_comp_sack_nr?
	net/ipv4/tcp_congestion_control
	net/ipv4/tcp_dsack
	net/ipv4/tcp_early_retrans
	net/ipv4/tcp_ecn
	net/ipv4/tcp_fastopen
	net/ipv4/tcp_fin_timeout
	net/ipv4/tcp_frto
	net/ipv4/tcp_keepalive_time
	net/ipv4/tcp_limit_output_bytes
	net/ipv4/tcp_max_orphans?
	net/ipv4/tcp_max_reordering
	net/ipv4/tcp_max_syn_backlog
	net/ipv4/tcp_max_tw_buckets
	net/ipv4/tcp_mem?
	net/ipv4/tcp_min_tso_segs
	net/ipv4/tcp_moderate_rcvbuf
	net/ipv4/tcp_mtu_probing
	net/ipv4/tcp_no_metrics_save
	net/ipv4/tcp_notsent_lowat
	net/ipv4/tcp_pacing_ca_ratio?
	net/ipv4/tcp_pacing_ss_ratio?
	net/ipv4/tcp_rcvbuf_low_rtt?
	net/ipv4/tcp_recovery
	net/ipv4/tcp_reordering
	net/ipv4/tcp_rmem
	net/ipv4/tcp_rto_min_us?
	net/ipv4/tcp_sack
	net/ipv4/tcp_shrink_window?
	net/ipv4/tcp_slow_start_after_idle
	net/ipv4/tcp_syncookies
	net/ipv4/tcp_thin_linear_timeouts
	net/ipv4/tcp_timestamps
	net/ipv4/tcp_tso_rtt_log?
	net/ipv4/tcp_tso_win_divisor
	net/ipv4/tcp_tw_reuse
	net/ipv4/tcp_window_scaling
	net/ipv4/tcp_wmem
	net/ipv4/udp_mem?
	net/ipv4/udp_rmem_min
	net/ipv4/udp_wmem_min

	net/ipv6/conf/all/forwarding?
	net/ipv6/ip6frag_high_thresh?
	net/ipv6/neigh/default/gc_thresh3?

	net/netfilter/nf_conntrack_buckets?
	net/netfilter/nf_conntrack_max?
	net/netfilter/nf_conntrack_tcp_timeout_established?

	vm/dirty_background_bytes?
	vm/dirty_bytes?
	vm/min_free_kbytes
	vm/swappiness
	vm/zone_reclaim_mode?
`)

// readSettings reads every known setting that exists here. The kernel prints the fields of one value with tabs; here they are separated by single
// blanks, so that equal settings are equal text.
func readSettings(src *source, said *notes) []Setting {
	settings := make([]Setting, 0, len(sysctls))
	var missing []string
	for _, entry := range sysctls {
		name, optional := strings.CutSuffix(entry, "?")
		dotted := strings.ReplaceAll(name, "/", ".")
		b, err := src.read("proc/sys/" + name)
		switch {
		case err == nil:
			settings = append(settings, Setting{Knob: "sysctl:" + dotted, Value: strings.Join(strings.Fields(string(b)), " ")})
		case !errors.Is(err, fs.ErrNotExist):
			said.add("setting "+dotted, err)
		case !optional:
			missing = append(missing, dotted)
		}
	}
	// An archive may hold as little of /proc/sys as it likes without a word about each file.
	if len(missing) > 0 && src.live() {
		said.say("settings: not there in this kernel or network namespace: " + strings.Join(missing, ", "))
	}
	slices.SortFunc(settings, func(a, b Setting) int { return strings.Compare(a.Knob, b.Knob) })
	return settings
}
