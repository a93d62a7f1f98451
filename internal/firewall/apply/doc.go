// Package apply puts rules of nftables and iptables in force and takes them back, as knobs of the
// journal.
//
// # Model
//
// A [Plan] is a change of one table. It has two forms of the rules, [State]s, and knows which
// counter of one stands for which of the other. The knob of a table (firewall:nft/inet/filter)
// holds the digest of the form that is in force; [Tables] is its backend, so journal, guard, undo
// and recovery treat rules like any setting. Only the chains that change belong to the knob:
// whatever other programs do to the rest of the table is not looked at and stays.
//
// A change takes two transactions. The first puts the new rules in front of the old ones, with a
// rule between them that returns: the fence. Old rules are then out of force and keep their
// counters, so nothing is lost that was counted while the new rules were compiled. The second reads
// what they counted since the values were taken, deletes them, and keeps the difference in a chain
// that no packet reaches, linerate_carry. The next change of the table, in either direction, adds
// it. If a change leaves the names of chains and sets as they are, as undo does, it is repeated
// until nothing was counted in between, or [rounds] times. So the counters and the carried counts
// together are exact at any moment, and after kill -9 at any moment: everything that is needed to
// finish is in the kernel.
//
// Rules of iptables are changed in the same two transactions. iptables-restore --noflush puts new
// rules in front; the kernel carries the counters of the others over. Rules of iptables-nft are
// then deleted by nft, by their handles. Those of iptables-legacy are deleted by their positions,
// which only its lock, /run/xtables.lock, keeps as they were read: it is held during the whole
// change.
//
// Before a plan is offered, it is rehearsed ([Rehearse]): both forms are loaded into a network
// namespace of their own, changed there and back, and read. What nft prints of them there is what
// they must look like here.
//
// Each operation holds a lock (flock of the network namespace's file), which a running nft
// inherits: a guard does not look at rules while the nft of a killed writer is at work.
//
// # Units
//
// Counts are packets and bytes.
//
// # Sources
//
// iptables-restore(8) of iptables 1.8.9, seen on Linux 6.18: -c sets counters of rules that are
// added, and a change of a table of iptables-legacy zeroes the counters of its policies. nft(8) of
// nftables 1.0.6; nf_tables_api.c of Linux 6.18 (one transaction for each file, with the rules of
// both generations side by side until it commits); membarrier(2), whose MEMBARRIER_CMD_GLOBAL waits
// for packets that are still among the old rules.
//
// # Limits
//
// Only Linux. nft gives its transactions the number of the ruleset that it read itself, so a rule
// that another program adds between the last look and the transaction stands behind the fence; the
// look after it finds that, takes the new rules away again, and reports it. What the new rules have
// counted in that time may be lost then, some milliseconds. Buckets of limits start full. In
// iptables-legacy, packets that reach a policy between the reading of a table and its transaction
// are missing in the counter of the policy, and SIGKILL of iptables-restore itself between its two
// system calls zeroes the counters of the table.
package apply
