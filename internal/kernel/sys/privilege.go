package sys

// Capability is the number of one Linux capability, as in include/uapi/linux/capability.h.
type Capability uint

// The capabilities that linerate needs.
const (
	CapNetAdmin Capability = 12 // change interfaces, routes, queues
	CapNetRaw   Capability = 13 // raw sockets: ICMP echo if ping sockets are not permitted
	CapSysAdmin Capability = 21 // namespaces, most of the rest
)

// CapabilitySet is a set of capabilities, one bit each. Use it to explain a refusal beforehand,
// never to decide: a security module, or the user namespace that owns the object, may refuse
// despite the capability, and only the call itself shows that.
type CapabilitySet uint64

// Has reports whether c is in the set.
func (s CapabilitySet) Has(c Capability) bool { return c < 64 && s&(1<<c) != 0 }
