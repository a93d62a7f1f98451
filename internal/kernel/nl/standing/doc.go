// Package standing remembers all that stands on network interfaces, and puts it back after their
// driver was loaded again.
//
// # Model
//
// [Take] returns a [Picture]: for each interface its name, addresses, flags and the like, and as
// the kernel's own messages its addresses, routes, permanent neighbours, queueing disciplines and
// classes. A picture is plain data that survives as JSON. What the package cannot put back is a
// [Refusal] of Take: a port of a bridge, an interface with VLANs on it, filters, an XDP program, a
// route over a nexthop object. So nothing is taken down that would not come back.
//
// The new interface has another index. [Picture.Dress] gives it name, address and flags while it is
// down; [Picture.Return] sends the messages with the new index, as often as they need each other,
// and can be repeated. [Picture.Missing] compares afterwards.
//
// # Units
//
// Those of the kernel.
//
// # Sources
//
// rtnetlink(7), netlink(7); net/ipv4/fib_frontend.c and net/ipv6/route.c for what a request may
// contain of a reported route; net/sched/sch_api.c for disciplines.
//
// # Limits
//
// Linux. Routes that router advertisements made are left to the next advertisement, and temporary
// IPv6 addresses to the kernel. Memberships in multicast groups and sockets that are bound to the
// index of an interface belong to their programs. Rules (ip-rule(8)) name interfaces by name and
// never went away. Disciplines are those of the list in this package.
package standing
