// Package node is the part of a fleet that runs at a host, without privileges.
//
// # Model
//
// A [Node] keeps a connection to the bus and its identity fresh, says that it lives, answers
// questions and hands out documents. What it says comes from a [Source]: the host it runs on
// ([Host]), or one that a test simulates. The node reads; whatever only root may read or do, the
// source asks root's agent for over its local socket, and the agent decides alone.
//
// Orders and measurements are [Tasks]. A node does one at a time, in the order of their arrival,
// and keeps at most eight waiting. It neither reads an order nor remembers one: root's agent checks
// it, carries it out once, and answers a repeated one as before. So a node that dies between an
// order and its answer loses only the answer.
//
// A node that lost the bus tries again for ever, after a random time of up to a minute, and sends
// nothing late. An identity that has expired or was refused is renewed at the address where the
// host joined.
//
// # Units
//
// Times are those of the host's monotonic clock.
//
// # Sources
//
// Package message for what is said.
//
// # Limits
//
// One question at a time; the last 64 answers are kept for repeated ones. A document is packed
// whole: 8 MiB at most, packed.
package node
