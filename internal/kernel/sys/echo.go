package sys

// EchoKind is the way in which an ICMP echo socket was opened; it decides what the caller must
// write into a request and strip from a reply.
type EchoKind string

// The kinds. On a ping socket the kernel sets identifier and checksum of what is sent and hands out
// bare ICMP messages. On a raw one the caller sets both (for IPv6 the kernel still does the
// checksum) and IPv4 replies start with the IP header.
const (
	EchoPing EchoKind = "ping socket"
	EchoRaw  EchoKind = "raw socket"
)
