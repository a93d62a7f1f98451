package owner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/owner"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// shared is a filter table in which four programs meet, with the chains that iptables-save shows
// where Docker 24, ufw, kube-proxy and libvirt 9 run on one host.
const shared = `*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-USER - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-SERVICES - [0:0]
:LIBVIRT_FWI - [0:0]
:LIBVIRT_INP - [0:0]
:f2b-sshd - [0:0]
:ufw-before-input - [0:0]
:ufw-user-input - [0:0]
:house - [0:0]
-A INPUT -p tcp -m multiport --dports 22 -j f2b-sshd
-A INPUT -j LIBVIRT_INP
-A INPUT -j ufw-before-input
-A FORWARD -j DOCKER-USER
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:DOCKER - [0:0]
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
COMMIT
`

func said(claims []owner.Claim) string {
	var all []string
	for _, c := range claims {
		what := strings.Join(c.Chains, " ")
		if c.Whole {
			what = "all"
		}
		all = append(all, fmt.Sprintf("%s %s %s: %s", c.Program, c.Family, c.Table, what))
	}
	return strings.Join(all, "\n")
}

func TestSharedTables(t *testing.T) {
	r, err := read.IPTables(strings.NewReader(shared), nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := owner.Claims(r)
	want := `ufw ip filter: ufw-before-input ufw-user-input
docker ip filter: DOCKER DOCKER-ISOLATION-STAGE-1 DOCKER-USER
kube-proxy ip filter: KUBE-FIREWALL KUBE-SERVICES
fail2ban ip filter: f2b-sshd
libvirt ip filter: LIBVIRT_FWI LIBVIRT_INP
docker ip nat: DOCKER`
	if got := said(claims); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(owner.Programs(claims), " "); got != "docker fail2ban kube-proxy libvirt ufw" {
		t.Errorf("programs %q", got)
	}
}

// TestTables: the names of tables that programs make for themselves alone.
func TestTables(t *testing.T) {
	for _, c := range []struct{ family, table, flags, want string }{
		{"inet", "firewalld", "", "firewalld"}, {"ip", "firewalld", "", "firewalld"}, {"ip", "docker-bridges", "", "docker"},
		{"ip6", "kube-proxy", "", "kube-proxy"}, {"inet", "f2b-table", "", "fail2ban"},
		{"ip", "libvirt_network", "", "libvirt"}, {"inet", "netavark", "", "podman"}, {"inet", "fw4", "", "OpenWrt"},
		{"ip", "wg-quick-wg0", "", "wg-quick"}, {"ip", "nm-shared-eth1", "", "NetworkManager"},
		{"ip", "io.systemd.nat", "", "systemd-networkd"}, {"inet", "mine", "owner", ""},
	} {
		r := &ruleset.Ruleset{Program: ruleset.NFT,
			Tables: []*ruleset.Table{{Family: c.family, Name: c.table, Flags: strings.Fields(c.flags)}}}
		claims := owner.Claims(r)
		if len(claims) != 1 || !claims[0].Whole || claims[0].Program != c.want {
			t.Errorf("%s %s: %+v, want %q", c.family, c.table, claims, c.want)
		}
	}
	for _, name := range []string{"filter", "nat", "accounting", "firewall", "dockerish", "my-kube-proxy"} {
		r := &ruleset.Ruleset{Program: ruleset.NFT, Tables: []*ruleset.Table{{Family: "inet", Name: name,
			Chains: []*ruleset.Chain{{Name: "input"}, {Name: "docker"}, {Name: "IN"}, {Name: "house-KUBE-x"}}}}}
		if claims := owner.Claims(r); len(claims) != 0 {
			t.Errorf("%s: %+v", name, claims)
		}
	}
}

// TestSets: kube-proxy's mode ipvs has sets and few rules.
func TestSets(t *testing.T) {
	r := &ruleset.Ruleset{Program: ruleset.IPTablesLegacy, Tables: []*ruleset.Table{{Family: "ip", Name: "nat",
		Sets: []*ruleset.Set{{Name: "KUBE-CLUSTER-IP"}}}}}
	if claims := owner.Claims(r); len(claims) != 1 || claims[0].Program != "kube-proxy" || claims[0].Whole {
		t.Errorf("%+v", claims)
	}
}
