// Package lease is the right to load this host: one test at a time has it, in either role.
//
// # Model
//
// [Lease.Take] gives the lease to a test, or reports at once that another has it ([ErrBusy]);
// [Lease.Wait] waits a moment, so that one test may follow another. Commands that test, the
// responder of linerate, schedules of the hub and the node of a fleet take it, which are processes
// of different users. A command that a user types runs without it, too, and warns. A test between
// two addresses of one host is both roles of that host: the sender has the lease, and the
// responder takes none. On Linux the lease is the name of an abstract Unix socket: the kernel
// gives it to one process, in no file that needs permissions, and takes it back when the process
// ends, however it ends. The name belongs to the network namespace, and so does the network that a
// test loads.
//
// # Units
//
// None.
//
// # Sources
//
// unix(7), "Abstract sockets".
//
// # Limits
//
// On systems other than Linux the lease holds within one process. Any user of this host can take
// it. The kernel says which process that is (SO_PEERCRED), and the error names it. Root's tests and
// those of the same user keep a test away as long as they last, another user's only for
// [Lease.Courtesy]: then a process that runs for long, such as serve, tests beside it. A command
// that a user types does so at once. A test between two namespaces of one machine has two leases.
package lease
