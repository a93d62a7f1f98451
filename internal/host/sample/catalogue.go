package sample

import "slices"

// counter and gauge make metrics.
func counter(name, help string, labels ...string) *Metric {
	return &Metric{Name: name, Kind: Counter, Help: help, Labels: labels}
}

func gauge(name, help string, labels ...string) *Metric {
	return &Metric{Name: name, Kind: Gauge, Help: help, Labels: labels}
}

// The metrics of interfaces.
var (
	receiveBytes = counter("linerate_interface_receive_bytes_total",
		"Bytes received, as the driver counts them: rx_bytes of RTM_GETSTATS, as in /proc/net/dev.", "interface")
	transmitBytes = counter("linerate_interface_transmit_bytes_total",
		"Bytes sent, as the driver counts them: tx_bytes of RTM_GETSTATS, as in /proc/net/dev.", "interface")
	receivePackets = counter("linerate_interface_receive_packets_total",
		"Packets received: rx_packets of RTM_GETSTATS, as in /proc/net/dev.", "interface")
	transmitPackets = counter("linerate_interface_transmit_packets_total",
		"Packets sent: tx_packets of RTM_GETSTATS, as in /proc/net/dev.", "interface")
	receiveMulticast = counter("linerate_interface_receive_multicast_packets_total",
		"Multicast packets received: multicast of RTM_GETSTATS, as in /proc/net/dev.", "interface")
	interfaceDrops = counter("linerate_interface_drops_total",
		"Packets lost at a place: ring (the largest of rx_missed_errors, rx_fifo_errors and rx_over_errors of "+
			"RTM_GETSTATS, which drivers use for the same packets), kernel (rx_dropped, tx_dropped), card "+
			"(tx_fifo_errors), unwanted (rx_nohandler), qdisc (RTM_GETQDISC).",
		"interface", "direction", "place")
	interfaceErrors = counter("linerate_interface_errors_total",
		"Damaged packets of a kind: rx_crc_errors, rx_length_errors, rx_frame_errors, tx_carrier_errors, "+
			"tx_aborted_errors, tx_window_errors and tx_heartbeat_errors of RTM_GETSTATS, as in "+
			"/sys/class/net/*/statistics; other is what rx_errors and tx_errors have beyond them.",
		"interface", "direction", "kind")
	interfaceUp = gauge("linerate_interface_up",
		"1 while the interface is up and has a carrier, otherwise 0: IFF_UP and IFF_LOWER_UP of RTM_GETLINK.",
		"interface")
	interfaceSpeed = gauge("linerate_interface_speed_bits_per_second",
		"Negotiated speed, read when the link changes and every half minute; absent without a link: ethtool, "+
			"as in /sys/class/net/*/speed.", "interface")
	interfaceMTU = gauge("linerate_interface_mtu_bytes",
		"Largest packet of the interface: IFLA_MTU of RTM_GETLINK, as in /sys/class/net/*/mtu.", "interface")
	carrierChanges = counter("linerate_interface_carrier_changes_total",
		"Times that the carrier came or went: IFLA_CARRIER_CHANGES of RTM_GETLINK, as in "+
			"/sys/class/net/*/carrier_changes.", "interface")
	interfaceInfo = gauge("linerate_interface_info",
		"Always 1: driver and kind of the interface and its lower interface, of RTM_GETLINK and "+
			"/sys/class/net/*/device/driver.",
		"interface", "driver", "kind", "parent")

	qdiscDrops = counter("linerate_qdisc_drops_total",
		"Packets dropped by the queueing disciplines, the largest figure of the interface's tree: TCA_STATS2 of "+
			"RTM_GETQDISC, as in tc -s qdisc.", "interface")
	qdiscRequeues = counter("linerate_qdisc_requeues_total",
		"Packets that the driver returned to the queue: TCA_STATS2 of RTM_GETQDISC, as in tc -s qdisc.", "interface")
	qdiscOverlimits = counter("linerate_qdisc_overlimits_total",
		"Times that a shaper had to wait: TCA_STATS2 of RTM_GETQDISC, as in tc -s qdisc.", "interface")
	qdiscBacklog = gauge("linerate_qdisc_backlog_bytes",
		"Bytes waiting in the queueing disciplines: TCA_STATS2 of RTM_GETQDISC, as in tc -s qdisc.", "interface")

	queuePackets = counter("linerate_queue_packets_total",
		"Packets of one queue of a card, named rx-0 or tx-0: the driver's own counters, as in ethtool -S.",
		"interface", "queue")
	queueBytes = counter("linerate_queue_bytes_total",
		"Bytes of one queue of a card: the driver's own counters, as in ethtool -S.", "interface", "queue")
	queueDrops = counter("linerate_queue_drops_total",
		"Packets dropped by one queue of a card: those of the driver's own counters in ethtool -S that count "+
			"lost packets.", "interface", "queue")
	queueInterrupts = counter("linerate_queue_interrupts_total",
		"Interrupts of one queue of a card, named rx-0 or tx-0, or 0 where one serves both directions, or "+
			"other: line intr of /proc/stat.", "interface", "queue")
)

// The metrics of processors.
var (
	cpuSeconds = counter("linerate_cpu_seconds_total",
		"Time of a processor in a mode, without overlap: user, nice, system, irq, softirq, iowait, steal and "+
			"idle of /proc/stat.", "cpu", "mode")
	cpuCardInterrupts = counter("linerate_cpu_card_interrupts_total",
		"Interrupts of network cards that a processor took: /sys/kernel/irq/*/per_cpu_count, as in /proc/interrupts.",
		"cpu")
	cpuSoftirqs = counter("linerate_cpu_softirqs_total",
		"Softirqs for the network, net_rx or net_tx, that a processor ran: /proc/softirqs.", "cpu", "kind")
	softnetPackets = counter("linerate_softnet_packets_total",
		"Packets that a processor took from NICs, of all network namespaces: first column of /proc/net/softnet_stat.",
		"cpu")
	softnetDropped = counter("linerate_softnet_dropped_total",
		"Packets dropped because the backlog of a processor was full: second column of /proc/net/softnet_stat.", "cpu")
	softnetSqueezes = counter("linerate_softnet_time_squeezes_total",
		"Times that a processor ended its polling with work left: third column of /proc/net/softnet_stat.", "cpu")
	softnetRPS = counter("linerate_softnet_received_rps_total",
		"Times that other processors woke this one for packets (RPS): tenth column of /proc/net/softnet_stat.", "cpu")
)

// The metrics of protocols, tables and memory.
var (
	tcpSent = counter("linerate_tcp_segments_sent_total",
		"TCP segments sent, without retransmissions: Tcp OutSegs of /proc/net/snmp.")
	tcpReceived = counter("linerate_tcp_segments_received_total",
		"TCP segments received: Tcp InSegs of /proc/net/snmp.")
	tcpRetransmits = counter("linerate_tcp_retransmits_total",
		"TCP segments retransmitted: Tcp RetransSegs of /proc/net/snmp.")
	tcpTimeouts = counter("linerate_tcp_timeouts_total",
		"Retransmission timers that expired: TcpExt TCPTimeouts of /proc/net/netstat.")
	tcpListenOverflows = counter("linerate_tcp_listen_overflows_total",
		"Connections refused because a listener's queue was full: TcpExt ListenOverflows of /proc/net/netstat.")
	tcpListenDrops = counter("linerate_tcp_listen_drops_total",
		"Handshakes that a listener refused, including overflows: TcpExt ListenDrops of /proc/net/netstat.")
	tcpSynRetransmits = counter("linerate_tcp_syn_retransmits_total",
		"Handshake segments retransmitted: TcpExt TCPSynRetrans of /proc/net/netstat.")
	tcpOutOfOrder = counter("linerate_tcp_out_of_order_total",
		"Segments that arrived out of order: TcpExt TCPOFOQueue of /proc/net/netstat.")
	tcpChecksumErrors = counter("linerate_tcp_checksum_errors_total",
		"TCP segments with a wrong checksum: Tcp InCsumErrors of /proc/net/snmp.")
	tcpResets = counter("linerate_tcp_resets_sent_total",
		"TCP resets sent: Tcp OutRsts of /proc/net/snmp.")
	tcpActiveOpens = counter("linerate_tcp_active_opens_total",
		"Connections opened here: Tcp ActiveOpens of /proc/net/snmp.")
	tcpPassiveOpens = counter("linerate_tcp_passive_opens_total",
		"Connections accepted here: Tcp PassiveOpens of /proc/net/snmp.")
	tcpConnections = gauge("linerate_tcp_connections",
		"Established TCP connections: Tcp CurrEstab of /proc/net/snmp.")
	tcpMemory = gauge("linerate_tcp_memory_pages",
		"Memory of all TCP sockets of the machine in pages: TCP mem of /proc/net/sockstat.")
	udpReceived = counter("linerate_udp_datagrams_received_total",
		"UDP datagrams delivered over IPv4 and IPv6: Udp InDatagrams of /proc/net/snmp and /proc/net/snmp6.")
	udpSent = counter("linerate_udp_datagrams_sent_total",
		"UDP datagrams sent over IPv4 and IPv6: Udp OutDatagrams of /proc/net/snmp and /proc/net/snmp6.")
	udpReceiveBufferErrors = counter("linerate_udp_receive_buffer_errors_total",
		"UDP datagrams lost because the socket's buffer was full: Udp RcvbufErrors of /proc/net/snmp and "+
			"/proc/net/snmp6.")
	udpSendBufferErrors = counter("linerate_udp_send_buffer_errors_total",
		"UDP datagrams that could not be sent for lack of room: Udp SndbufErrors of /proc/net/snmp and "+
			"/proc/net/snmp6.")
	hostDrops = counter("linerate_host_drops_total",
		"Packets lost behind the NICs at a place: softnet, conntrack, nfqueue, neighbour, ip, tcp or socket, summed "+
			"from /proc/net/softnet_stat, /proc/net/stat, /proc/net/netfilter/nfnetlink_queue, /proc/net/snmp, "+
			"/proc/net/snmp6 and /proc/net/netstat.", "place")
	sockets = gauge("linerate_sockets",
		"Sockets of a kind: tcp, tcp_time_wait, tcp_orphan, udp of /proc/net/sockstat and /proc/net/sockstat6.", "kind")
	contextSwitches = counter("linerate_context_switches_total",
		"Context switches of the machine: ctxt of /proc/stat.")
	pressure = counter("linerate_pressure_seconds_total",
		"Time during which a task (some) or all of them (full) waited for cpu, memory or irq: /proc/pressure.",
		"resource", "kind")
	memoryAvailable = gauge("linerate_memory_available_bytes",
		"Memory that programs can get without swapping: MemAvailable of /proc/meminfo.")
	memoryTotal = gauge("linerate_memory_total_bytes",
		"Memory of the machine: MemTotal of /proc/meminfo.")
	conntrackEntries = gauge("linerate_conntrack_entries",
		"Connections in the connection tracking table: /proc/sys/net/netfilter/nf_conntrack_count.")
	conntrackLimit = gauge("linerate_conntrack_limit",
		"Capacity of the connection tracking table in connections: /proc/sys/net/netfilter/nf_conntrack_max.")
)

// The metrics of the sampler itself.
var (
	sampleSeconds = gauge("linerate_sample_seconds",
		"Time that the previous reading took, from its first kernel file to its last.")
	sampleSeries = gauge("linerate_sample_series",
		"Series in the reading.")
)

// catalogue lists all metrics, in the order of the tables above.
var catalogue = []*Metric{
	receiveBytes, transmitBytes, receivePackets, transmitPackets, receiveMulticast, interfaceDrops, interfaceErrors,
	interfaceUp, interfaceSpeed, interfaceMTU,
	carrierChanges, interfaceInfo,
	qdiscDrops, qdiscRequeues, qdiscOverlimits, qdiscBacklog,
	queuePackets, queueBytes, queueDrops, queueInterrupts,
	cpuSeconds, cpuCardInterrupts, cpuSoftirqs, softnetPackets, softnetDropped, softnetSqueezes, softnetRPS,
	tcpSent, tcpReceived, tcpRetransmits, tcpTimeouts, tcpListenOverflows, tcpListenDrops, tcpSynRetransmits,
	tcpOutOfOrder, tcpChecksumErrors, tcpResets,
	tcpActiveOpens, tcpPassiveOpens, tcpConnections, tcpMemory,
	udpReceived, udpSent, udpReceiveBufferErrors, udpSendBufferErrors,
	hostDrops, sockets, contextSwitches, pressure, memoryAvailable, memoryTotal, conntrackEntries, conntrackLimit,
	sampleSeconds, sampleSeries,
}

// Metrics lists all metrics of a [Sampler]. A host has those that its kernel and its NICs support.
func Metrics() []*Metric { return slices.Clone(catalogue) }
