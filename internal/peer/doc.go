// Package peer connects to one host at the other end: it reads its snapshot, runs tests against it,
// and changes its knobs.
//
// # Model
//
// [Serve] answers the clients of a wire.Listener, [ServeStdio] one client at the other end of ssh.
// [Connect] returns a [Client] for a target that a user types (see [ParseTarget]). A Client reads
// the far host's snapshot, runs tests of package traffic, and sets the far host's knobs. Every
// change goes through that host's own journal as a trial under its own guard, so package tune
// treats the near and the far host in the same way.
//
// # Rules of the far side
//
// A client needs the key or, for ssh, a login: package wire authenticates both ends before the
// first message. With ServerOptions.Peers each client has a key of its own, with rights and an end
// (package roster): a client whose key is revoked or expires is closed within a second, and a
// change asks for the rights of that moment. Without, a key is good until ServerOptions.KeyExpires,
// when every client is closed, and for the first KeyClients source addresses that prove it. The
// rules below bound what a client with the key can take: connections, waiting calls, the time of a
// test, of a trial and of a wait, the bytes of a message. Reading (snapshot, history, profile, the
// knobs of the catalogue but its secrets) needs only the key. Tests stay within traffic.Limits.
// Changes need --allow-tuning, and are refused beyond the class and the patterns that it names
// (knob.Permission), wherever the client's own limits are. A client may undo changes made by remote
// clients, but never changes made on the host itself. A commit takes effect once a connection that
// the client opens afterwards has carried data both ways: an open connection may survive a change
// that blocks every new one. Without it, the changes go back.
//
// Heavy tests (all but ping and mtu) run one at a time unless ServerOptions.AtOnce allows more. A
// waiting client is sent how many tests come first, and waits five minutes at most. Sources share
// the places evenly; within that, first come, first served. A test whose window or segment size the
// listening socket must have runs alone on the host. A test that would be refused is refused before
// it waits. One admission.Gate counts the tests and their bytes for all dialects that this host
// answers, and no test moves more than its source has left there. Answers to pings are bounded by
// their rate only and are not charged.
//
// An idle client costs no goroutine except the sleeping reader of its channel. It is closed after
// an hour without a request, and one source may have at most 63 of 64 places. One client at a time
// may tune. When a connection ends, its trials are undone first; if serve itself dies, the
// journal's guard undoes them. A connected client that forgets its trial has it undone when the
// lease is over, even while another call of it waits. The guard's own deadline is later by more
// than a change may take, because the guard ends all of serve.
//
// A call that its client gave up, or whose client left while it was queued, changes nothing. A call
// that is already running is finished, because half a change is worse than either.
//
// # Control protocol, version 1
//
// Messages of package wire. Calls carry an id and are answered in order; all but "cancel" get
// exactly one answer:
//
//	hello         {protocol, linerate, host, confirms}  → {protocol, linerate, host, os, arch,
//	                                            allow_tuning, tuning}; must come first
//	snapshot                                  → host.Snapshot
//	history                                   → {changes}
//	profile       {duration, exact}           → profile.Profile, without names of processes
//	knob.read     {knob}                      → {value}
//	change.apply  {reason, for, settings}     → {ids}
//	change.undo   {ids}                       → {outcomes}
//	change.commit {ids}                       → {token, within_nanoseconds}: a data connection with
//	                                            the token has to carry 64 KiB in both directions
//	                                            within that time
//	change.confirm                            → {} once it did; otherwise the changes were undone
//	run.open      {spec}                      → {token}, then package traffic's own test.* messages
//	                                            both ways
//	run.close                                 → {}
//	cancel        {cancel: id}                the client no longer wants the call with that id
//
// The far side sends "answer" {id, body, fault}. While a call waits, it also sends "note" {id,
// text}, repeated every ten seconds so that the client knows that the far side is alive. A note
// without an id gives the reason why the connection ends. A fault names the kinds of its error, so
// that errors.Is finds the same sentinels on both hosts.
//
// # Units
//
// Durations are nanoseconds in JSON, as in traffic.Spec.
//
// # Sources
//
// RFC 6724 for the order of a name's addresses; ssh(1) and ssh_config(5) for SSH_CONNECTION and
// `ssh -G`; signal(7) and os/signal for SIGPIPE on descriptor 1. The sentinels that a fault carries
// are those of io/fs and of packages knob, journal and wire.
//
// # Limits
//
// Data connections go to the address of the control channel, or for ssh to the host name that `ssh
// -G` prints; behind a jump host they need a path of their own. Package dialect measures hosts that
// speak other dialects.
package peer
