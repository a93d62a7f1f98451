package drops

// Undelivered returns how many packets reached the IP layer of a host and neither went on nor were
// refused for a reason that has a counter. That is what a packet filter drops at prerouting, input
// or forward: no counter has its verdicts (NF_DROP).
//
// Datagrams for groups that the host has not joined are among them for IPv4 (ip_route_input_mc),
// and not for IPv6, whose multicast has a counter. An incomplete datagram's fragments are not. The
// number is a lower bound, because some counters hold packets that had no part in the balance.
func Undelivered(counters map[string]uint64) uint64 {
	return balance(counters, "Ip.InReceives", "Ip.InDelivers", "Ip.ForwDatagrams", "Ip.InHdrErrors",
		"Ip.InAddrErrors", "Ip.InUnknownProtos", "Ip.InDiscards", "IpExt.InNoRoutes", "IpExt.InTruncatedPkts",
		"TcpExt.IPReversePathFilter", "conntrack.drop", "nfqueue.dropped", "nfqueue.user_dropped") +
		balance(counters, "Ip6.InReceives", "Ip6.InDelivers", "Ip6.OutForwDatagrams", "Ip6.InHdrErrors",
			"Ip6.InAddrErrors", "Ip6.InUnknownProtos", "Ip6.InDiscards", "Ip6.InNoRoutes", "Ip6.InTruncatedPkts",
			"Ip6.InTooBigErrors", "Ip6.InMcastPkts")
}

// balance returns what reached IP less what the other counters have, and less the fragments that
// became fewer packets.
func balance(counters map[string]uint64, received string, others ...string) uint64 {
	family := received[:len(received)-len("InReceives")]
	counted := counters[family+"ReasmReqds"] - min(counters[family+"ReasmOKs"], counters[family+"ReasmReqds"])
	for _, name := range others {
		counted += counters[name]
	}
	return counters[received] - min(counted, counters[received])
}

// Unsent returns how many packets the IP layer of a host was given and did not send: what its
// packet filter dropped at output or postrouting. It is 0 before Linux 6.7, which counts no
// OutTransmits. That counter has what the host forwards, and each fragment.
func Unsent(counters map[string]uint64) uint64 {
	var all uint64
	for _, c := range []struct{ family, forwarded string }{{"Ip.", "Ip.ForwDatagrams"}, {"Ip6.", "Ip6.OutForwDatagrams"}} {
		sent := counters[c.family+"OutTransmits"]
		if sent == 0 {
			continue
		}
		given := counters[c.family+"OutRequests"] + counters[c.forwarded] + counters[c.family+"FragCreates"]
		all += given - min(sent+counters[c.family+"FragOKs"], given)
	}
	return all
}

// Frames returns how many frames reached the IP layer. GRO and virtual links hand over bundles: the
// kernel counts frames by their ECN bits, and bundles as packets (ip_rcv_core).
func Frames(counters map[string]uint64) float64 {
	var frames float64
	for _, family := range []string{"IpExt.", "Ip6."} {
		for _, bits := range []string{"InNoECTPkts", "InECT0Pkts", "InECT1Pkts", "InCEPkts"} {
			frames += float64(counters[family+bits])
		}
	}
	return frames
}

// inOnePacket returns how many frames one packet of the IP layer was on average, 1 or more.
func inOnePacket(counters map[string]uint64) float64 {
	packets := float64(counters["Ip.InReceives"] + counters["Ip6.InReceives"])
	if packets == 0 {
		return 1
	}
	return max(Frames(counters)/packets, 1)
}
