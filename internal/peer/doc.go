// Package peer is one host at the other end: its snapshot, tests against it, and changes on it.
//
// # Model
//
// [Serve] answers clients that come over a wire.Listener, [ServeStdio] one client at the other end
// of ssh. [Connect] gives a [Client] for a target as users write it (see [ParseTarget]). A Client
// has the far host's snapshot, runs tests by package traffic, and turns the far host's knobs: every
// change there goes through that host's own journal as a trial under its own guard, so what package
// tune sees of a far host and of the near one is alike.
//
// # Rules of the far side
//
// Nothing below is reached without the key (or, for ssh, without a login): package wire
// authenticates both ends before the first message. What remains are bounds on what a holder of the
// key can take: clients, calls in waiting, time of a test, of a trial and of a wait, bytes of a
// message. Reading (snapshot, history, knobs) needs no more than the key; tests are within
// traffic.Limits; changing needs --allow-tuning, and a client takes back what was made from afar
// and never what was changed on the host itself.
//
// Heavy tests (all but ping and mtu) run one at a time unless ServerOptions.AtOnce says otherwise.
// Who has to wait is told how many come first, for five minutes at most; sources share the places
// evenly, and within that first come is first served. A test whose window or segment size the
// listening socket must have is alone on the host. What would be refused in the end is refused
// before it waits. One admission.Gate counts the tests of all programs that this host answers and
// their bytes, and no test moves more than its source has left there; answers to pings alone are
// bounded by their rate and not charged.
//
// A client that is connected and does nothing has no goroutine but the sleeping reader of its
// channel. It is closed after an hour without a word, and one source has at most 63 in 64 of the
// places for clients. One client at a time may tune, and only where serve was started with
// --allow-tuning. When a connection ends, for whatever reason, the trials made through it are taken
// back before anything else; when serve itself dies, the journal's guard does the same. A client
// that stays but forgets its trial has it taken back when its lease is over; the guard's own
// deadline lies later by more than any call may take, because what it ends is all of serve.
//
// A call whose client gave it up, or went away while it was queued, changes nothing any more; one
// that is under way is finished, because half a change helps nobody.
//
// # Control protocol, version 1
//
// Messages of package wire. Calls carry an id and are answered in order; all but "cancel" get
// exactly one answer:
//
//	hello         {protocol, linerate, host}  → {protocol, linerate, host, os, arch, allow_tuning}; must come first
//	snapshot                                  → host.Snapshot
//	history                                   → {changes}
//	knob.read     {knob}                      → {value}
//	change.apply  {reason, for, settings}     → {ids}
//	change.undo   {ids}                       → {outcomes}
//	change.commit {ids}                       → {}
//	run.open      {spec}                      → {token}, then package traffic's own test.* messages both ways
//	run.close                                 → {}
//	cancel        {cancel: id}                the call with that id is no longer wanted
//
// The far side sends "answer" {id, body, fault} and, while a call waits, "note" {id, text}, again
// every ten seconds so that the client knows that it is not forgotten; a note without an id says
// why the connection ends. A fault names the kinds of its error, so that errors.Is finds the same
// sentinels on both hosts.
//
// # Units
//
// Durations are nanoseconds in JSON, as in traffic.Spec.
//
// # Sources
//
// RFC 6724 for the order of a name's addresses; ssh(1) and ssh_config(5) for SSH_CONNECTION and
// `ssh -G`; signal(7) and os/signal for SIGPIPE on descriptor 1. The sentinels that travel in a
// fault are those of io/fs and of packages knob, journal and wire.
//
// # Limits
//
// Data connections go to the address that the control channel reached, or for ssh to the host name
// that `ssh -G` tells; behind a jump host they need a way of their own. Hosts that speak other
// dialects are no Clients: package dialect measures them.
package peer
