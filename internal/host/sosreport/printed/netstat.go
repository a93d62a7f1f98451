package printed

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// sentences are what "netstat -s" of net-tools 1.60 to 2.10 prints instead of the kernel's names,
// with # for the number (statistics.c). Counters without a sentence have their own name:
// "TCPLossProbes: 3". Where versions differ each sentence has its line.
var sentences = map[string]map[string]string{
	"Ip": {
		"# total packets received": "InReceives", "# with invalid headers": "InHdrErrors",
		"# with invalid addresses": "InAddrErrors",
		"# forwarded":              "ForwDatagrams", "# with unknown protocol": "InUnknownProtos",
		"# incoming packets discarded": "InDiscards",
		"# incoming packets delivered": "InDelivers", "# requests sent out": "OutRequests",
		"# outgoing packets dropped":         "OutDiscards",
		"# dropped because of missing route": "OutNoRoutes", "# fragments dropped after timeout": "ReasmTimeout",
		"# reassemblies required":  "ReasmReqds",
		"# packets reassembled ok": "ReasmOKs", "# packet reassemblies failed": "ReasmFails",
		"# packet reassembles failed":      "ReasmFails",
		"# outgoing packets fragmented ok": "FragOKs", "# outgoing packets failed fragmentation": "FragFails",
		"# fragments created":     "FragCreates",
		"# fragments received ok": "FragOKs", "# fragments failed": "FragFails",
	},
	"Icmp": {
		"# ICMP messages received": "InMsgs", "# input ICMP message failed": "InErrors",
		"# input ICMP message failed.": "InErrors",
		"# ICMP messages sent":         "OutMsgs", "# ICMP messages failed": "OutErrors",
	},
	"Tcp": {
		"# active connection openings": "ActiveOpens", "# active connections openings": "ActiveOpens",
		"# passive connection openings": "PassiveOpens",
		"# failed connection attempts":  "AttemptFails", "# connection resets received": "EstabResets",
		"# connections established": "CurrEstab",
		"# segments received":       "InSegs", "# segments sent out": "OutSegs", "# segments send out": "OutSegs",
		"# segments retransmitted": "RetransSegs",
		"# segments retransmited":  "RetransSegs", "# bad segments received": "InErrs",
		"# bad segments received.": "InErrs", "# resets sent": "OutRsts",
	},
	"Udp": {
		"# packets received": "InDatagrams", "# packets to unknown port received": "NoPorts",
		"# packets to unknown port received.": "NoPorts",
		"# packet receive errors":             "InErrors", "# packets sent": "OutDatagrams",
		"# receive buffer errors": "RcvbufErrors", "# send buffer errors": "SndbufErrors",
	},
	"TcpExt": {
		"# SYN cookies sent": "SyncookiesSent", "# SYN cookies received": "SyncookiesRecv",
		"# invalid SYN cookies received":                                             "SyncookiesFailed",
		"# resets received for embryonic SYN_RECV sockets":                           "EmbryonicRsts",
		"# packets pruned from receive queue because of socket buffer overrun":       "PruneCalled",
		"# packets pruned from receive queue":                                        "RcvPruned",
		"# packets dropped from out-of-order queue because of socket buffer overrun": "OfoPruned",
		"# ICMP packets dropped because they were out-of-window":                     "OutOfWindowIcmps",
		"# ICMP packets dropped because socket was locked":                           "LockDroppedIcmps",
		"# TCP sockets finished time wait in fast timer":                             "TW",
		"# time wait sockets recycled by time stamp":                                 "TWRecycled",
		"# TCP sockets finished time wait in slow timer":                             "TWKilled",
		"# passive connections rejected because of time stamp":                       "PAWSPassive",
		"# active connections rejected because of time stamp":                        "PAWSActive",
		"# packets rejects in established connections because of timestamp":          "PAWSEstab",
		"# packets rejected in established connections because of timestamp":         "PAWSEstab",
		"# delayed acks sent":                                                        "DelayedACKs",
		"# delayed acks further delayed because of locked socket":                    "DelayedACKLocked",
		"Quick ack mode was activated # times":                                       "DelayedACKLost",
		"# times the listen queue of a socket overflowed":                            "ListenOverflows",
		"# SYNs to LISTEN sockets dropped":                                           "ListenDrops",
		"# SYNs to LISTEN sockets ignored":                                           "ListenDrops",
		"# packets directly queued to recvmsg prequeue":                              "TCPPrequeued",
		"# packets directly queued to recvmsg prequeue.":                             "TCPPrequeued",
		"# packet headers predicted":                                                 "TCPHPHits",
		"# packets header predicted":                                                 "TCPHPHits",
		"# packets header predicted and directly queued to user":                     "TCPHPHitsToUser",
		"# packets directly received from backlog":                                   "TCPDirectCopyFromBacklog",
		"# packets directly received from prequeue":                                  "TCPDirectCopyFromPrequeue",
		"# packet headers predicted and directly queued to user":                     "TCPHPHitsToUser",
		"# acknowledgments not containing data received":                             "TCPPureAcks",
		"# acknowledgments not containing data payload received":                     "TCPPureAcks",
		"# predicted acknowledgments":                                                "TCPHPAcks",
		"# times recovered from packet loss due to fast retransmit":                  "TCPRenoRecovery",
		"# times recovered from packet loss due to SACK data":                        "TCPSackRecovery",
		"# times recovered from packet loss by selective acknowledgements":           "TCPSackRecovery",
		"# bad SACKs received":                                                       "TCPSACKReneging",
		"# bad SACK blocks received":                                                 "TCPSACKReneging",
		"Detected reordering # times using FACK":                                     "TCPFACKReorder",
		"Detected reordering # times using SACK":                                     "TCPSACKReorder",
		"Detected reordering # times using time stamp":                               "TCPTSReorder",
		"Detected reordering # times using reno fast retransmit":                     "TCPRenoReorder",
		"# congestion windows fully recovered":                                       "TCPFullUndo",
		"# congestion windows fully recovered without slow start":                    "TCPFullUndo",
		"# congestion windows partially recovered using Hoe heuristic":               "TCPPartialUndo",
		"# congestion window recovered using DSACK":                                  "TCPDSACKUndo",
		"# congestion window recovered without slow start using DSACK":               "TCPDSACKUndo",
		"# congestion windows recovered without slow start by DSACK":                 "TCPDSACKUndo",
		"# congestion windows recovered after partial ack":                           "TCPLossUndo",
		"# congestion windows recovered without slow start after partial ack":        "TCPLossUndo",
		"# retransmits lost":                                                         "TCPLostRetransmit",
		"# TCP data loss events":                                                     "TCPLoss",
		"# timeouts after reno fast retransmit":                                      "TCPRenoFailures",
		"# timeouts after SACK recovery":                                             "TCPSackFailures",
		"# timeouts in loss state":                                                   "TCPLossFailures",
		"# fast retransmits":                                                         "TCPFastRetrans",
		"# forward retransmits":                                                      "TCPForwardRetrans",
		"# retransmits in slow start":                                                "TCPSlowStartRetrans",
		"# other TCP timeouts":                                                       "TCPTimeouts",
		"# reno fast retransmits failed":                                             "TCPRenoRecoveryFail",
		"# classic Reno fast retransmits failed":                                     "TCPRenoRecoveryFail",
		"# sack retransmits failed":                                                  "TCPSackRecoveryFail",
		"# SACK retransmits failed":                                                  "TCPSackRecoveryFail",
		"# times receiver scheduled too late for direct processing":                  "TCPSchedulerFailed",
		"# packets collapsed in receive queue due to low socket buffer":              "TCPRcvCollapsed",
		"# DSACKs sent for old packets":                                              "TCPDSACKOldSent",
		"# DSACKs sent for out of order packets":                                     "TCPDSACKOfoSent",
		"# DSACKs received":                                                          "TCPDSACKRecv",
		"# DSACKs for out of order packets received":                                 "TCPDSACKOfoRecv",
		"# connections reset due to unexpected SYN":                                  "TCPAbortOnSyn",
		"# connections reset due to unexpected data":                                 "TCPAbortOnData",
		"# connections reset due to early user close":                                "TCPAbortOnClose",
		"# connections aborted due to memory pressure":                               "TCPAbortOnMemory",
		"# connections aborted due to timeout":                                       "TCPAbortOnTimeout",
		"# connections aborted after user close in linger timeout":                   "TCPAbortOnLinger",
		"# times unable to send RST due to no memory":                                "TCPAbortFailed",
		"TCP ran low on memory # times":                                              "TCPMemoryPressures",
		"Ran # times out of system memory during packet sending":                     "SockMallocOOM",
	},
}

// histograms are the rows of ICMP messages by type. Some have the same words for both directions,
// and linerate does not need them.
var histograms = map[string]bool{"ICMP input histogram:": true, "ICMP output histogram:": true}

// ParseNetstat parses "netstat -s": groups by their names with a colon, a sentence for each counter
// below. netstat omits most zero counters, and missing ones count as not known. Without -6 it has
// only IPv4 and TCP.
func ParseNetstat(text string) Counters {
	found := make(Counters)
	group := ""
	for line := range lines(text) {
		if line == "" {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			group = strings.TrimSuffix(line, ":")
			continue
		}
		// The rows of a histogram are indented deeper than the counters. Groups that package host
		// does not have (Sctp) are skipped.
		if strings.HasPrefix(line, "        ") || histograms[strings.TrimSpace(line)] ||
			!slices.Contains(nstatGroups, group) {
			continue
		}
		line = strings.TrimSpace(line)
		// A counter under its own name; sentences with a colon contain blanks before it.
		if name, value, ok := pair(line); ok && !strings.Contains(name, " ") {
			if n, ok := count(value); ok {
				found.put(group, name, n)
			}
			continue
		}
		sentence, n, ok := cutNumber(line)
		if name := sentences[group][sentence]; ok && name != "" {
			found.put(group, name, n)
		}
	}
	return found
}

// cutNumber replaces the only number of a sentence with #.
func cutNumber(line string) (string, uint64, bool) {
	// Anywhere in the sentence: "Ran 3 times out of system memory".
	words := strings.Fields(line)
	at, n := -1, uint64(0)
	for i, w := range words {
		if v, ok := count(w); ok {
			if at >= 0 {
				return "", 0, false // With two numbers it is unclear which is the counter.
			}
			at, n = i, v
		}
	}
	if at < 0 {
		return "", 0, false
	}
	words[at] = "#"
	return strings.Join(words, " "), n, true
}

// writeGroup writes one group; six: a line for each counter, as IPv6 has it.
func (c Counters) writeGroup(b *strings.Builder, group string, six bool) {
	// Sorted: readers find counters by name, not by the order of the kernel's tables.
	names := slices.Sorted(maps.Keys(c[group]))
	if len(names) == 0 {
		return
	}
	if six {
		for _, name := range names {
			b.WriteString(group + name + " " + strconv.FormatUint(c[group][name], 10) + "\n")
		}
		return
	}
	b.WriteString(group + ": " + strings.Join(names, " ") + "\n" + group + ":")
	for _, name := range names {
		b.WriteString(" " + strconv.FormatUint(c[group][name], 10))
	}
	b.WriteString("\n")
}
