// Package read makes the model of package ruleset from what packet filters print.
//
// # Model
//
// [NFT] reads nft -j list ruleset, [NFTText] what nft prints without -j and files of that form,
// [IPTables] iptables-save and ip6tables-save with or without counters, [IPSet] ipset save, [IPFW]
// ipfw -a list, [PF] pfctl -vvsr. [Any] chooses among them by what the text begins with. [Live]
// asks the programs of this host.
//
// A statement that the model does not have stays as it was written, as ruleset.Opaque. What a
// reader does not know at all is an opaque condition with an unknown effect, which stops every
// rewrite around it. A text that ends in the middle, or is of another program, is an error that
// names the line.
//
// # Sources
//
// libnftables-json(5) of nftables 1.0.6; iptables-extensions(8) of iptables 1.8.9; ipset(8) 7.17;
// ipfw(8), pf.conf(5) and pfctl(8) of FreeBSD 14.
//
// # Limits
//
// Rules that iptables-nft made appear in nft's JSON as xt statements without content: they are read
// from iptables-save instead.
//
// Of a file for iptables-restore, -D finds a rule that is the same as this program reads them: it
// finds none where a match that the model does not have is written in another way (5/s and
// 5/second). -F of all chains is refused after rules, and so is -Z: the programs differ there.
package read
