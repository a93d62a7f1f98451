package sys

// EchoKind is the kind of an ICMP echo socket. It determines what the caller must write into a
// request and strip from a reply.
type EchoKind string

// The kinds. On a ping socket the kernel sets the identifier and checksum of requests, and returns
// bare ICMP messages. On a raw socket the caller sets both (for IPv6 the kernel still computes the
// checksum), and IPv4 replies start with the IP header.
const (
	EchoPing EchoKind = "ping socket"
	EchoRaw  EchoKind = "raw socket"
)
