// Package agent answers what only root may read of a host, for those who are given its socket: the
// journal of changes, the runs and the measurements.
//
// # Model
//
// [Local] reads the answers where they are. A [Server] gives them to other processes over a Unix
// socket, a [Client] asks there; Local and Client have the same methods. All questions only read;
// none names a file, and the one argument there is, the id of a run or a measurement, is checked
// before it becomes part of a name.
//
// # Protocol
//
// One JSON object a line each way, in turn, as often as wanted. A question has at most 256 bytes:
//
//	{"ask":"hello"}                                 {"version":"1.2.3","state":"/var/lib/linerate"}
//	{"ask":"stamp"}                                 {"stamp":"20480-1763812800000000000 …"}     another text whenever one of them has changed
//	{"ask":"history"}                               {"changes":[…]}                             as in linerate.history/1, oldest first
//	{"ask":"runs"}                                  {"runs":["20261122-130405-7f3a",…]}         newest first
//	{"ask":"run","id":"20261122-130405-7f3a"}       {"document":{…}}                            as it is stored, without blanks
//	{"ask":"measurements"}                          {"runs":["20261122-130405-7f3a",…]}         newest first
//	{"ask":"measurement","id":"20261122-…"}         {"document":{…}}                            as it is stored, without blanks
//
// What cannot be answered is {"error":"…"}, with "missing":true where there is nothing of that
// name. What is not a question of this list is answered once by an error, and the connection ends.
//
// # Who may ask
//
// The socket belongs to root and one group, mode 0660, in a directory that nobody else can write
// to; it takes connections only once it has that mode. Whoever connects is looked at again
// (SO_PEERCRED, SO_PEERGROUPS): root, the user of the server, members of the group. At most 16
// connections at a time and 8 of one user; a connection that is silent for a minute, or does not
// read its answer for ten seconds, is closed; two answers at most are made at a time.
//
// # Units
//
// As in the documents that pass through.
//
// # Sources
//
// unix(7), socket(7); sd_listen_fds(3) for a socket that systemd has opened.
//
// # Limits
//
// Linux for the server. A document of more than 16 MiB is refused.
package agent
