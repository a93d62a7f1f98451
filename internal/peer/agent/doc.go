// Package agent gives users access to data of a host that only root may read: the journal of
// changes, the runs and the measurements. Access to its socket is the permission. Where root asks
// for it, the agent also takes signed orders of a fleet.
//
// # Model
//
// [Local] reads the data on this host. A [Server] offers them to other processes over a Unix
// socket, and a [Client] reads them from there; Local and Client have the same methods. All
// questions are read-only, and none names a file. The only argument, the id of a run or a
// measurement, is checked before it becomes part of a file name.
//
// An order is the exception that writes. Access to the socket is no permission for it: package
// executor checks signatures, ledger and policy, and the process that hands it over asserts
// nothing.
//
// # Protocol
//
// One JSON object a line in each direction, alternately, any number of times. A question has at
// most 256 bytes, an order 6 KiB:
//
//	{"ask":"hello"}                            {"version":"1.2.3","state":"/var/lib/linerate"}
//	{"ask":"stamp"}                            {"stamp":"20480-1763812800000000000 …"}
//	                                             changes whenever one of them has changed
//	{"ask":"history"}                          {"changes":[…]}
//	                                             as in linerate.history/1, oldest first
//	{"ask":"rules"}                            {"rules":[{"table":"ip filter",…}],"rules_left":12}
//	                                             counters of the packet filter's rules, at most 256
//	{"ask":"runs"}                             {"runs":["20261122-130405-7f3a",…]}
//	                                             newest first
//	{"ask":"run","id":"20261122-130405-7f3a"}  {"document":{…}}
//	                                             as it is stored, without blanks
//	{"ask":"measurements"}                     {"runs":["20261122-130405-7f3a",…]}
//	                                             newest first
//	{"ask":"measurement","id":"20261122-…"}    {"document":{…}}
//	                                             as it is stored, without blanks
//
//	{"ask":"order","order":"…"}                {"order":{"order":"o1","code":"trial",…}}
//	                                             a signed order, in base64
//	{"ask":"orders","id":"r1"}                 {"report":{"host":"…","epoch":5,"orders":[…]}}
//	                                             what became of the orders of a rollout, or of all
//
// A failed question is answered by {"error":"…"}, with "missing":true if no object has that name. A
// line that is no question of this list is answered by an error, and the server closes the
// connection.
//
// # Access
//
// The socket belongs to root and one group, mode 0660, in a directory that only root can write to.
// It accepts connections only once it has that mode. The server checks each peer again
// (SO_PEERCRED, SO_PEERGROUPS): it admits root, its own user, and members of the group. At most 16
// connections are open at a time, 8 per user; root gets one in any case. A connection is closed
// when it is silent for a minute, or does not read its answer for ten seconds. At most two answers
// are computed and sent at a time, one per user: a user who reads none keeps no other away.
//
// # Units
//
// Those of the documents that pass through.
//
// # Sources
//
// unix(7), socket(7); sd_listen_fds(3) for a socket that systemd has opened.
//
// # Limits
//
// The unit dist/systemd/linerate-agent.service lets the agent run no program and open no netlink
// socket. It then answers that there are no rules for it; linerate-agent-rules.conf permits both.
//
// The server runs on Linux only. A document of more than 16 MiB is refused.
package agent
