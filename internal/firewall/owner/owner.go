package owner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Claim is what one program holds of a table.
type Claim struct {
	Program string // firewalld, ufw, docker, kube-proxy, fail2ban, libvirt …; empty: one that marked the table as its own
	Family  string
	Table   string
	Whole   bool // the whole table; otherwise Chains of it, and the rules that jump there
	Chains  []string
	How     string // how to change its rules; empty: not known
}

// program is how one program's rules are known. All names are compared as they are, and those that
// end in * by what they begin with.
type program struct {
	name   string
	tables []string // of nftables, which are wholly the program's
	chains []string // in tables that it shares
	sets   []string
	how    string
}

// programs are the ones that are known. The first that fits counts.
func programs() []program {
	return []program{
		{"firewalld", []string{"firewalld"}, []string{"INPUT_ZONES*", "FORWARD_IN_ZONES*", "FORWARD_OUT_ZONES*",
			"FORWARD_ZONES", "PREROUTING_ZONES*", "POSTROUTING_ZONES*", "INPUT_direct", "OUTPUT_direct", "FORWARD_direct",
			"FWDI_*", "FWDO_*", "FWD_*_allow", "IN_*_allow", "IN_*_deny"}, nil, "firewall-cmd --permanent, then --reload"},
		{"ufw", nil, []string{"ufw-*", "ufw6-*"}, nil, "ufw, /etc/ufw/before.rules and after.rules"},
		{"docker", []string{"docker-bridges"}, []string{"DOCKER", "DOCKER-*"}, nil,
			"the chain DOCKER-USER, which docker leaves alone"},
		{"kube-proxy", []string{"kube-proxy"}, []string{"KUBE-*"}, []string{"KUBE-*"},
			"the cluster's services and network policies"},
		{"fail2ban", []string{"f2b-table"}, []string{"f2b-*", "fail2ban-*"}, []string{"f2b-*", "addr-set-*", "addr6-set-*"},
			"fail2ban-client and its jails"},
		{"libvirt", []string{"libvirt_network"}, []string{"LIBVIRT_*"}, nil, "virsh net-edit, or a hook of libvirt"},
		{"calico", []string{"calico"}, []string{"cali-*"}, nil, "calicoctl, and network policies"},
		{"cilium", nil, []string{"CILIUM_*", "OLD_CILIUM_*"}, nil, "the cluster's network policies"},
		{"flannel", []string{"flannel-ipv4", "flannel-ipv6"}, []string{"FLANNEL-*"}, nil, ""},
		{"podman", []string{"netavark"}, []string{"NETAVARK*", "CNI-*"}, nil, "podman network"},
		{"tailscale", []string{"ts-*"}, []string{"ts-input", "ts-forward", "ts-postrouting"}, nil,
			"tailscale set --netfilter-mode"},
		{"lxd or incus", []string{"lxd", "incus"}, []string{"lxd_*", "incus_*"}, nil, "network settings of lxc or incus"},
		{"OpenWrt", []string{"fw4"}, []string{"zone_*_input", "zone_*_forward"}, nil, "uci and /etc/config/firewall"},
		{"wg-quick", []string{"wg-quick-*"}, nil, nil, "PostUp and Table in the tunnel's file"},
		{"NetworkManager", []string{"nm-shared-*", "nm-mpl*"}, []string{"nm-sh-in-*", "nm-sh-fw-*"}, nil, "nmcli"},
		{"systemd-networkd", []string{"io.systemd.nat"}, nil, nil, "IPMasquerade= in its .network files"},
		{"sshguard", []string{"sshguard"}, []string{"sshguard"}, nil, "sshguard.conf"},
		{"crowdsec", []string{"crowdsec", "crowdsec6"}, []string{"CROWDSEC_CHAIN*"}, nil, "cscli decisions"},
		{"NixOS", []string{"nixos-fw", "nixos-nat"}, []string{"nixos-fw*", "nixos-nat*"}, nil,
			"networking.firewall in the configuration"},
		{"miniupnpd", nil, []string{"MINIUPNPD*", "miniupnpd*"}, nil, "miniupnpd.conf"},
	}
}

// Claims returns who will rewrite which parts of a ruleset, in the order of its tables. Rules of
// ipfw and pf have no names, and nothing is said of them.
func Claims(r *ruleset.Ruleset) []Claim {
	var all []Claim
	known := programs()
	for _, t := range r.Tables {
		if c, ok := whole(known, t); ok {
			all = append(all, c)
			continue
		}
		for _, p := range known {
			c := Claim{Program: p.name, Family: t.Family, Table: t.Name, How: p.how}
			for _, chain := range t.Chains {
				if matches(p.chains, chain.Name) {
					c.Chains = append(c.Chains, chain.Name)
				}
			}
			held := slices.ContainsFunc(t.Sets, func(s *ruleset.Set) bool { return matches(p.sets, s.Name) })
			if len(c.Chains) > 0 || held {
				all = append(all, c)
			}
		}
	}
	return all
}

// whole returns the claim on a table as such.
func whole(known []program, t *ruleset.Table) (Claim, bool) {
	c := Claim{Family: t.Family, Table: t.Name, Whole: true}
	for _, p := range known {
		if matches(p.tables, t.Name) {
			c.Program, c.How = p.name, p.how
			return c, true
		}
	}
	return c, slices.Contains(t.Flags, "owner")
}

// matches reports whether a name is one of a list, in which * stands for anything.
func matches(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		before, after, wild := strings.Cut(n, "*")
		if !wild {
			return n == name
		}
		return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
	})
}

// Programs returns the programs of claims, each once, in alphabetical order. A table that an
// unnamed program holds is not among them.
func Programs(claims []Claim) []string {
	var names []string
	for _, c := range claims {
		if c.Program != "" && !slices.Contains(names, c.Program) {
			names = append(names, c.Program)
		}
	}
	sorting.Func(names, cmp.Compare[string])
	return names
}
