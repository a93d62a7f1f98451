package sys

// Capability is the number of one Linux capability, as in include/uapi/linux/capability.h.
type Capability uint

// The capabilities that linerate asks about.
const (
	CapNetAdmin Capability = 12 // change interfaces, routes, queues
	CapNetRaw   Capability = 13 // raw sockets: ICMP echo where ping sockets are closed
	CapSysAdmin Capability = 21 // namespaces, most of the rest
)

// CapabilitySet is a set of capabilities, one bit each. It serves to explain a refusal beforehand,
// never to decide: a security module or the user namespace that owns the object may refuse all the
// same, and only the call itself tells.
type CapabilitySet uint64

// Has tells whether c is in the set.
func (s CapabilitySet) Has(c Capability) bool { return c < 64 && s&(1<<c) != 0 }
