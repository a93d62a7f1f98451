package datagram

// Support is what this kernel does with datagrams: nil is yes, an error that is sys.ErrNotSupported
// is no, and [ErrCorrupt] is a kernel that does it wrong.
type Support struct {
	Send    error // cut messages into datagrams, UDP_SEGMENT
	Receive error // merge datagrams into messages, UDP_GRO
}
