package datagram

// Support is what this kernel does with datagrams: nil means yes, an error that is
// sys.ErrNotSupported means no, and [ErrCorrupt] means that the kernel does it wrong.
type Support struct {
	Send    error // split messages into datagrams, UDP_SEGMENT
	Receive error // merge datagrams into messages, UDP_GRO
}
