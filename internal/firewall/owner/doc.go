// Package owner finds whose rules are: programs that write rules of packet filters rewrite them
// when they like, and a change of theirs by another program is lost then.
//
// # Model
//
// A [Claim] is one program's hold on a table: on all of it, or on some of its chains and the jumps
// to them. A program is known by the names that it gives tables, chains and sets, which are fixed
// in its source. A table that its maker has marked with the flag owner is claimed too, though not
// by name: the kernel lets no other process change it.
//
// # Sources
//
// The sources of firewalld (nftables.py, ipXtables.py), ufw (before.rules, ufw-init-functions),
// moby (libnetwork/drivers/bridge, nftables backend of Docker 29), Kubernetes (pkg/proxy/iptables,
// ipvs, nftables, pkg/kubelet), fail2ban (action.d), libvirt (network_iptables.c,
// network_nftables.c), and of the others named in the table; nft(8) for the flag owner (Linux
// 5.12).
//
// # Limits
//
// A name is no proof: rules stay when the program is gone, and an administrator may use the same
// name. What is found is therefore a reason to ask, not to know better.
package owner
