// Package executor carries out signed orders on this host, through its journal and nothing else.
//
// # Model
//
// [Executor.Execute] takes one envelope from a process without rights and answers it. It believes
// nothing that this process says: it checks the signatures against the host's own keys, the order
// against the host's own ledger and clock, and the change against the host's own policy. Then:
//
//	try      compare the knob with the expected value; record the order; apply the new value as a
//	         trial with its deadline; undo it at once where the kernel kept another value
//	commit   keep the trial of the try that the order names, if it is still in force
//	persist  write the files that make the kept change of the try survive a restart
//	undo     take back the change of the try that the order names, and remove its files
//
// A guard process takes a trial back at its deadline, whatever becomes of the agent, the node, the
// network and the hub. No order makes a trial longer: a try that arrives again only gets its answer
// again, and another try is refused while a trial is in force.
//
// [Executor.Report] returns what became of every order that the ledger remembers, from the journal
// and not from old answers, so that a hub which has lost everything can ask the hosts.
//
// # After a crash
//
//	the agent died                      journal shows           answer, when the order comes again
//	before the order was recorded       nothing                 carried out
//	after that, before the first write  nothing                 interrupted
//	during the write, or before the     a trial, until its      trial, then reverted
//	answer                              guard takes it back
//	during a commit                     trial or committed      interrupted, or committed
//	during an undo or a persist         any                     carried out again
//
// # Units
//
// Those of packages order and journal.
//
// # Sources
//
// Packages order, policy and journal.
//
// # Limits
//
// One order at a time. While another linerate has the journal open, the answer is busy and nothing
// is recorded. Without a persist, a restart of the host ends a change, and the report says so.
package executor
