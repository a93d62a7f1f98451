// Package desk is the hub's end of a fleet: it joins bus, register, inventory and questions, and
// answers the administrator.
//
// # Model
//
// A [Desk] listens for hosts that join, and for the connections of members. It reads their signs of
// life, fetches the facts that it does not have, and puts the register's decisions in force at the
// bus: a host that is no member any more loses its connection.
//
// The administrator talks to it over a Unix socket in the directory of the fleet, which only the
// user of the hub and root can reach: [Call] sends a [Request] and receives a document. The socket
// is the permission; the password of the page gives no right over the fleet. The work for a request
// ends with its client: the hub asks no more hosts, and the tests that hosts have begun end by
// themselves. A rollout that has begun is no such work.
//
// # Units
//
// Times are UTC by the clock of the hub.
//
// # Sources
//
// docs/design/0017-fleet.md.
//
// # Limits
//
// What the desk knows of hosts is in memory; after a start it is complete once every host has
// spoken, within a minute. One hub at a time has the register.
package desk
