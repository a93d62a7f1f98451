package tcpinfo

// Buffers describes a socket's buffers and algorithms, for the evidence; zero values are not known.
type Buffers struct {
	SendBytes, ReceiveBytes int64 // SO_SNDBUF and SO_RCVBUF as the kernel keeps them
	Congestion              string
	// UnsentBytes is the limit set at this end for what it queues before the congestion window
	// admits it (TCP_NOTSENT_LOWAT), at any time so far; 0: no limit.
	UnsentBytes int64
}
