package profile

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed stages.txt
var stageTable string

// Stages outside of the table.
const (
	StageUser    = "user programs"
	StageOther   = "other kernel"
	StageGuest   = "virtual machines"
	StageUnknown = "unresolved"
	stageIdle    = "idle"
	stageSoftIRQ = "softirq"
	stageBPF     = "BPF"
)

// workStages are the rows of the table that say what a function does, wherever it is called from.
// All other rows are places of the network path.
var workStages = map[string]string{
	"copy": "copy", "checksum": "checksum", "skb alloc/free": "packet buffers", "memory alloc": "memory",
	"DMA/IOMMU": "DMA", "VM exit": "hypervisor", "sched": "scheduler", "lock": "lock", "timer/clock": "timer",
	"RCU": "RCU", "entry/mitigation": "entry", "irq": "interrupt", "profiler": "profiler", "idle": "idle",
	"softirq": "softirq", "virtio rings": "device rings", "block devices": "storage", "files": "files",
	"virtual memory": "memory",
}

// Kinds of work that are no row of the table.
const (
	WorkProtocol = "protocol"
	WorkUser     = "program"
	WorkOther    = "other"
)

// prefixes place functions that the table does not name. The first that fits wins.
var prefixes = []struct{ prefix, stage string }{
	{"nf_conntrack_", "conntrack/NAT"}, {"__nf_conntrack_", "conntrack/NAT"}, {"nf_ct_", "conntrack/NAT"},
	{"__nf_ct_", "conntrack/NAT"}, {"nf_nat_", "conntrack/NAT"},
	{"nft_", "netfilter"}, {"nf_", "netfilter"}, {"xt_", "netfilter"}, {"ipt_", "netfilter"}, {"ip6t_", "netfilter"},
	{"ip_set_", "netfilter"}, {"ip_vs_", "netfilter"},
	{"tcp_gro_", "GRO"}, {"udp_gro_", "GRO"}, {"gro_", "GRO"}, {"inet_gro_", "GRO"},
	{"tcp_write_", "TCP tx"}, {"tcp_send_", "TCP tx"}, {"tcp_push", "TCP tx"}, {"tcp_tso_", "TCP tx"},
	{"tcp_", "TCP rx"}, {"__tcp_", "TCP rx"}, {"bbr_", "TCP rx"}, {"cubictcp_", "TCP rx"}, {"udp", "UDP"},
	{"__udp", "UDP"},
	{"br_", "bridge/OVS"}, {"__br_", "bridge/OVS"}, {"ovs_", "bridge/OVS"},
	{"veth_", "veth/tun/vhost"}, {"tun_", "veth/tun/vhost"}, {"tap_", "veth/tun/vhost"},
	{"vhost_", "veth/tun/vhost"}, {"__veth_", "veth/tun/vhost"},
	{"bond_", "VLAN/bond/macvlan"}, {"vlan_", "VLAN/bond/macvlan"}, {"macvlan_", "VLAN/bond/macvlan"},
	{"ipvlan_", "VLAN/bond/macvlan"},
	{"vxlan_", "tunnel"}, {"geneve_", "tunnel"}, {"gre_", "tunnel"}, {"ip_tunnel_", "tunnel"},
	{"xfrm", "crypto/TLS/IPsec"}, {"esp", "crypto/TLS/IPsec"}, {"tls_", "crypto/TLS/IPsec"},
	{"crypto_", "crypto/TLS/IPsec"}, {"wg_", "crypto/TLS/IPsec"}, {"aesni_", "crypto/TLS/IPsec"},
	{"chacha", "crypto/TLS/IPsec"}, {"poly1305", "crypto/TLS/IPsec"},
	{"fib_", "routing/neighbour"}, {"fib6_", "routing/neighbour"}, {"neigh_", "routing/neighbour"},
	{"__neigh_", "routing/neighbour"}, {"ip_route_", "routing/neighbour"}, {"ip6_route_", "routing/neighbour"},
	{"rt_", "routing/neighbour"}, {"dst_", "routing/neighbour"}, {"arp_", "routing/neighbour"},
	{"xdp_", "XDP"}, {"__xdp_", "XDP"}, {"xsk_", "XDP"}, {"page_pool_", "memory alloc"},
	{"qdisc_", "qdisc/tx core"}, {"fq_codel_", "qdisc/tx core"}, {"pfifo_", "qdisc/tx core"},
	{"sch_", "qdisc/tx core"}, {"tcf_", "tc/classify"}, {"cls_", "tc/classify"},
	{"sock_", "socket/syscall"}, {"__sock_", "socket/syscall"}, {"sk_", "socket/syscall"},
	{"__sk_", "socket/syscall"}, {"__sys_", "socket/syscall"}, {"___sys_", "socket/syscall"},
	{"inet_", "socket/syscall"}, {"unix_", "socket/syscall"}, {"ep_", "socket/syscall"},
	{"skb_", "skb alloc/free"}, {"__skb_", "skb alloc/free"}, {"napi_", "softirq"},
	{"virtnet_", "driver rx"}, {"virtqueue_", "virtio rings"},
	{"blk_", "block devices"}, {"__blk_", "block devices"}, {"bio_", "block devices"}, {"submit_bio", "block devices"},
	{"dd_", "block devices"}, {"virtio_queue_rq", "block devices"}, {"virtblk_", "block devices"},
	{"nvme_", "block devices"}, {"scsi_", "block devices"}, {"elv_", "block devices"},
	{"ext4_", "files"}, {"jbd2_", "files"}, {"xfs_", "files"}, {"btrfs_", "files"}, {"vfs_", "files"},
	{"iomap_", "files"}, {"__iomap_", "files"}, {"filemap_", "files"}, {"dentry_", "files"}, {"lookup_", "files"},
	{"path_", "files"}, {"ksys_", "files"}, {"generic_file_", "files"}, {"pipe_", "files"}, {"anon_pipe_", "files"},
	{"folio_", "virtual memory"}, {"__folio_", "virtual memory"}, {"lru_", "virtual memory"}, {"mas_", "virtual memory"},
	{"vma_", "virtual memory"}, {"unmap_", "virtual memory"}, {"zap_", "virtual memory"},
	{"do_anonymous_", "virtual memory"}, {"handle_mm_fault", "virtual memory"}, {"__handle_mm_fault", "virtual memory"},
	{"do_user_addr_fault", "virtual memory"}, {"copy_page_range", "virtual memory"}, {"tlb_", "virtual memory"},
	{"flush_tlb_", "virtual memory"}, {"next_uptodate_", "virtual memory"}, {"damon_", "virtual memory"},
	{"mmap_", "virtual memory"}, {"__rmqueue", "memory alloc"},
	{"free_unref_", "memory alloc"}, {"__free_", "memory alloc"}, {"get_page_", "memory alloc"},
	{"bpf_prog_", stageBPF}, {"bpf_trampoline_", stageBPF}, {"bpf_dispatcher_", stageBPF}, {"__bpf_", stageBPF},
	{"csum_", "checksum"}, {"clear_page", "memory alloc"}, {"kmem_cache_", "memory alloc"},
	{"kmalloc", "memory alloc"}, {"__kmalloc", "memory alloc"}, {"kfree", "memory alloc"},
	{"mem_cgroup_", "memory alloc"}, {"__memcg_", "memory alloc"}, {"iommu_", "DMA/IOMMU"}, {"dma_", "DMA/IOMMU"},
	{"rcu_", "RCU"}, {"__rcu_", "RCU"}, {"hrtimer_", "timer/clock"}, {"__hrtimer_", "timer/clock"},
	{"timer", "timer/clock"}, {"ktime_", "timer/clock"}, {"tick_", "timer/clock"},
	{"_raw_", "lock"}, {"__raw_", "lock"}, {"mutex_", "lock"}, {"rwsem_", "lock"}, {"futex_", "lock"},
	{"sched_", "sched"}, {"perf_", "profiler"}, {"__perf_", "profiler"},
	{"asm_sysvec_", "irq"}, {"sysvec_", "irq"}, {"__sysvec_", "irq"}, {"asm_", "entry/mitigation"},
	{"irqentry_", "entry/mitigation"}, {"srso_", "entry/mitigation"}, {"__x86_indirect_", "entry/mitigation"},
}

// stages is the table by function, read once: it never changes.
var stages = sync.OnceValue(func() map[string]string {
	m := make(map[string]string, 1200)
	stage := ""
	for line := range strings.Lines(stageTable) {
		line = strings.TrimSpace(line)
		if name, _, heads := strings.Cut(line, "\t"); heads {
			stage = name
		} else if !strings.HasPrefix(line, "#") {
			m[Plain(line)] = stage
		}
	}
	return m
})

// StageOf returns the row of the table for a kernel function, by its name or by a prefix of it, or
// StageOther. Suffixes that the compiler adds (.isra.0, .constprop.0, .cold) do not matter.
func StageOf(function string) string {
	function = Plain(function)
	if s, ok := stages()[function]; ok {
		return s
	}
	for _, p := range prefixes {
		if strings.HasPrefix(function, p.prefix) {
			return p.stage
		}
	}
	return StageOther
}

// Plain returns the name of a function without what the compiler adds to it.
func Plain(name string) string {
	for _, mark := range []string{".isra", ".constprop", ".part", ".cold", ".llvm", ".lto_priv"} {
		if i := strings.Index(name, mark); i > 0 {
			name = name[:i]
		}
	}
	return strings.TrimSuffix(name, "_noprof")
}

// onPath reports whether a row of the table is a place of the network path, not a kind of work.
func onPath(stage string) bool {
	if _, work := workStages[stage]; work {
		return false
	}
	switch stage {
	case StageOther, StageUser, StageGuest, StageUnknown:
		return false
	}
	return true
}

// workOf returns what a leaf in a stage does.
func workOf(stage string) string {
	switch stage {
	case StageUser, StageGuest:
		return WorkUser
	case StageOther, StageUnknown:
		return WorkOther
	}
	if w, ok := workStages[stage]; ok {
		return w
	}
	return WorkProtocol
}

// unlocks only allow interrupts again: every sample of a timer in them stands for code before them.
var unlocks = map[string]bool{
	"_raw_spin_unlock_irqrestore": true, "_raw_spin_unlock_irq": true, "_raw_read_unlock_irqrestore": true,
	"_raw_read_unlock_irq": true, "_raw_write_unlock_irqrestore": true, "_raw_write_unlock_irq": true,
	"__raw_spin_unlock_irqrestore": true, "__raw_spin_unlock_irq": true,
}

// enables allow interrupts again at one instruction and do work of their own at others. A sample
// counts as moved at the one offset that has most samples of the function, see [enableShare].
var enables = map[string]bool{
	"finish_task_switch": true, "handle_softirqs": true, "__do_softirq": true, "do_syscall_64": true,
	"exc_page_fault": true, "irqentry_exit_to_user_mode": true, "local_bh_enable_ip": true,
	"__local_bh_enable_ip": true, "softirq_handle_begin": true,
}

// An offset of a function in enables is an instruction that allows interrupts when it has at least
// enableShare of the samples of the function, and enableLeast samples.
const (
	enableShare = 0.5
	enableLeast = 10
)

// softIRQs run the handlers of softirqs: handle_softirqs from Linux 6.10 on. The label of the
// section hides the older name in some kernels.
var softIRQs = map[string]bool{"handle_softirqs": true, "__do_softirq": true, "__softirqentry_text_start": true}
