// Package bus is the transport of a fleet: subjects, identities and connections between a hub and
// its hosts, over NATS.
//
// # Model
//
// A [Trust] holds the keys of a fleet and signs an identity for each host. An [Authority] is the
// hub's own certificate authority, which hosts pin when they join. A [Hub] is the middle: a NATS
// server in this process ([Embed]) or a cluster elsewhere ([Attach]). [Dial] connects a host, and
// [Hub.Connect] the hub itself. Both return a [Conn], and nothing of NATS leaves this package.
//
// # Subjects
//
//	lr.h.ID.…    to one host            a host may read those of its own id
//	lr.g.GROUP.… to the hosts of a group  and of the groups in its identity
//	lr.all.…     to every host
//	lr.up.ID.…   from one host          a host may write those of its own id
//
// A host may read and write nothing else, so it sees no answer of another host, and the subject of
// an answer proves which host sent it. A host needs no inbox: the hub asks for answers below
// lr.up.ID.
//
// # Identities
//
// An operator signs an account, the account signs users: NATS's decentralised JWT. The server keeps
// nothing about a host, so the same identities work at an external cluster, which needs only what
// [Trust.Resolver] prints. Four keys stay at the hub (the signing keys and those of the account);
// the operator's own key is only needed to replace a signing key, and may be kept elsewhere.
// A revoked key is named in the account's JWT: the server ends its connection and refuses the next.
//
// # Units
//
// Times are UTC, identities hold whole seconds. Sizes are bytes.
//
// # Sources
//
// docs.nats.io (JWT, permissions); the source of nats-server 2.15.2 and nats.go 1.55.0; RFC 5280.
// docs/design/0017-fleet.md has the figures that chose the options.
//
// # Limits
//
// Delivery is at most once. A message has at most [MaxMessage] bytes. Without JetStream: the truth
// about a host stays at the host.
package bus
