package tcpinfo

// TimestampBytes is the length of the timestamps option with its padding, in every segment
// (RFC 7323 §3.2).
const TimestampBytes = 12

// OfferedMSS returns the segment size in bytes that this end offered in its handshake; 0: not
// known. The kernel subtracts the timestamps from its own offer once both ends use them.
func (t TCPInfo) OfferedMSS() int {
	if t.AdvMSSBytes > 0 && t.TimestampsOK {
		return t.AdvMSSBytes + TimestampBytes
	}
	return t.AdvMSSBytes
}

// Clamped reports whether a middlebox on the path lowered the segment size that from offered. It
// did if to sends segments smaller than from offered, than its own path MTU allows, and than half
// the window that from opened: nothing but these bounds them (net/ipv4/tcp_output.c, tcp_sync_mss).
func Clamped(from, to TCPInfo) bool {
	if from.AdvMSSBytes == 0 || to.SndMSSBytes == 0 || to.PMTUBytes == 0 {
		return false
	}
	headers := 20 + 20 // IPv4 and TCP
	if to.TimestampsOK {
		headers += TimestampBytes
	}
	most := min(from.AdvMSSBytes, to.PMTUBytes-headers)
	if half := int(to.MaxSndWndBytes / 2); half > 0 {
		most = min(most, half)
	}
	// Slack for the longer header of IPv6 and the rounding of windows. No middlebox clamps by so
	// little.
	return to.SndMSSBytes < most-64
}
