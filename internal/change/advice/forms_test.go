package advice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestWrittenForms: forms in which pages, recipes and other hosts' commands hold a setting.
func TestWrittenForms(t *testing.T) {
	const off = "net.ipv4.tcp_sack = 0: harmful"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"name and value", "net.ipv4.tcp_sack 0", []string{off}},
		{"numbers", "net.ipv4.tcp_rmem\t4096 87380 16777216", []string{"net.ipv4.tcp_rmem = 4096 87380 16777216: harmful"}},
		{"colon", "net.ipv4.tcp_sack: 0", []string{off}},
		{"colon and truth", "    net.ipv4.tcp_sack: false", []string{off}},
		{"JSON", `  "net.ipv4.tcp_sack": "0",`, []string{off}},
		{"Nix", `  "net.ipv4.tcp_sack" = 0;`, []string{off}},
		{"Nix, priority", `  "net.ipv4.tcp_sack" = lib.mkDefault 0;`, []string{off}},
		{"Puppet", "sysctl { 'net.ipv4.tcp_sack': value => '0' }", []string{off}},
		{"Puppet, lines", "sysctl::value { \"net.ipv4.tcp_sack\":\n  ensure => present,\n  value  => \"0\",\n}",
			[]string{off}},
		{"Puppet, none", "sysctl { 'net.ipv4.tcp_sack': ensure => absent }", nil},
		{"Puppet, list", "'net.ipv4.ip_local_port_range' => [ 2048, 65535 ],",
			[]string{"net.ipv4.ip_local_port_range = 2048 65535: still-right"}},
		{"Chef", "default['sysctl']['params']['net']['ipv4']['tcp_sack'] = 0", []string{off}},
		{"Chef, symbols", "node.default[:sysctl][:attributes][:net][:ipv4][:tcp_sack] = 0", []string{off}},
		{"Chef, name", "node.default['fb_sysctl']['net.ipv4.tcp_sack'] = 0", []string{off}},
		{"Chef, resource", "sysctl_param 'net.ipv4.tcp_sack' do\n  value 0\nend", []string{off}},
		{"Ansible", "- sysctl:\n    name: net.ipv4.tcp_sack\n    value: '0'\n    state: present", []string{off}},
		{"Ansible, inline", "- { name: 'net.ipv4.tcp_sack', value: '0' }", []string{off}},
		{"Ansible, old", "  sysctl: name=net.ipv4.tcp_sack value=0 state=present", []string{off}},
		{"Ansible, lines", `    - "net.ipv4.tcp_sack=0"`, []string{off}},
		{"Salt", "net.ipv4.tcp_sack:\n  sysctl.present:\n    - value: 0", []string{off}},
		{"Hiera", "  net.ipv4.tcp_sack:\n    value: 0", []string{off}},
		{"Kubernetes", "  sysctls:\n  - name: net.ipv4.tcp_sack\n    value: \"0\"", []string{off}},
		{"item", "* net.ipv4.tcp_sack = 0", []string{off}},
		{"item with a command", "1. sysctl -w net.ipv4.tcp_sack=0", []string{off}},
		{"backquotes", "Use `net.ipv4.tcp_sack = 0` here.", []string{off}},
		{"command in backquotes", "Run `sysctl -w net.ipv4.tcp_sack=0` as root", []string{off}},
		{"fence on one line", "```sysctl -w net.ipv4.tcp_sack=0```", []string{off}},
		{"fence", "```bash\nnet.ipv4.tcp_sack = 0\n```", []string{off}},
		{"HTML", "<p><code>net.ipv4.tcp_sack = 0</code><br/>text</p>", []string{off}},
		{"HTML, two", "net.ipv4.tcp_sack=0<br>net.ipv4.tcp_dsack=1<br>",
			[]string{off, "net.ipv4.tcp_dsack = 1: now-default"}},
		{"entities", "<td>sysctl -w &quot;net.ipv4.tcp_sack=0&quot;</td>", []string{off}},
		{"table", "| Name | Default | Value |\n|---|---|---|\n| `net.ipv4.tcp_sack` | 1 | 0 |", []string{off}},
		{"table without a head", "| net.ipv4.tcp_sack | 0 | text |", []string{off}},
		{"HTML table", "<tr><td>net.ipv4.tcp_sack</td><td>0</td></tr>", []string{off}},
		{"HTML table, lines", "<tr>\n<td>net.ipv4.tcp_sack</td>\n<td>0</td>\n</tr>", []string{off}},
		{"ssh", "ssh root@db1 'sysctl -w net.ipv4.tcp_sack=0'", []string{off}},
		{"ssh, words", "ssh -p 22 db1 sudo sysctl -w net.ipv4.tcp_sack=0", []string{off}},
		{"namespace", "ip netns exec blue sysctl -w net.ipv4.tcp_sack=0", []string{off}},
		{"container", "docker run --sysctl net.ipv4.tcp_sack=0 --sysctl net.core.somaxconn=4096 x",
			[]string{off, "net.core.somaxconn = 4096: now-default"}},
		{"blank behind the sign", "sysctl -w net.ipv4.tcp_sack= 0", []string{off}},
		{"blanks around the sign", "sysctl -w net.ipv4.tcp_sack = 0", []string{off}},
		{"sed", "sed -i 's/^net.ipv4.tcp_sack.*/net.ipv4.tcp_sack = 0/' /etc/sysctl.conf", []string{off}},
		{"own helper", "set_value net.ipv4.tcp_sack 0", []string{off}},
		{"two lines in one", `echo -e "net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_dsack = 1" >> /etc/sysctl.conf`,
			[]string{off, "net.ipv4.tcp_dsack = 1: now-default"}},
		{"default behind", "net.inet.tcp.tso=0 (default 1)", []string{"net.inet.tcp.tso = 0: harmful"}},
		{"TuneD", "[main]\nsummary=x\n[net]\nfeatures=tso off\n[sysctl]\nnet.ipv4.tcp_sack=0",
			[]string{"ethtool:*/feature.tx-tcp-segmentation = off: harmful", off}},
		{"TuneD without main", "[net]\nfeatures=tso off\n[sysctl]\nnet.ipv4.tcp_sack=0",
			[]string{"ethtool:*/feature.tx-tcp-segmentation = off: harmful", off}},
		{"batch file", "@netsh int tcp set global autotuning=disabled",
			[]string{"netsh:tcp/autotuninglevel = disabled: harmful"}},
		{"by position", "netsh int tcp set supplemental internet 300 10 dctcp",
			[]string{"netsh:tcp/minrto = 300: now-default", "netsh:tcp/icw = 10: now-default",
				"netsh:tcp/congestionprovider = dctcp: harmful"}},
		{"PowerShell in a batch file",
			`powershell.exe Set-NetTCPSetting -SettingName internet -AutoTuningLevelLocal disabled`,
			[]string{"netsh:tcp/autotuninglevel = disabled: harmful"}},
		{"property of a NIC",
			`Set-NetAdapterAdvancedProperty -Name "E" -DisplayName "Large Send Offload V2 (IPv4)" -DisplayValue "Disabled"`,
			[]string{"adapter:E/Large Send Offload V2 (IPv4) = Disabled: harmful"}},
		{"written .reg file", "echo [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters] >> x.reg\n" +
			`echo "TcpWindowSize"=dword:0000ffff >> x.reg`,
			[]string{`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize = 65535: ignored`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := short(judged(t, Target{Release: release(t, Linux, "6.18")}, c.text+"\n"))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

// TestNotForms: sentences, other keys and shells around them are no settings, and what gives a
// value for a setting in words is reported.
func TestNotForms(t *testing.T) {
	for text, unread := range map[string]int{
		"net.core.somaxconn limits the backlog of a listener.": 0,
		"net.core.somaxconn: the longest backlog":              0,
		"- name: configure net.core.somaxconn":                 0,
		"value: 12":                                            0,
		"| a | b |\n|---|---|\n| c | 1 |":                      0,
		"if (a < b && c > d) {":                                0,
		"cmd1 &reg add":                                        0,
		"Raise net.core.somaxconn to at least 12":              1,
		"net.core.somaxconn | ten | 12":                        0,
		"boot.kernel.sysctl = {":                               0,
		"Set-NetAdapaterAdvancedProperty * -DisplayName x":     1,
		"netsh int tcp set global nosuch":                      0,
		"QLEN=10\nethtool -G eth0 rx $QLEN":                    0,
		"QLEN=10":                                              1,
	} {
		a, err := Parse([]byte(text))
		if err != nil || len(a.Unread) != unread {
			t.Errorf("%q: %d not understood (%v), %v; want %d", text, len(a.Unread), a.Unread, err, unread)
		}
	}
}

// TestDirection: a setting that exists is not right for that alone. A value against the purpose of
// the setting is harmful, one that the kernel refuses or does not read is ignored.
func TestDirection(t *testing.T) {
	for _, c := range []struct {
		release, text string
		want          Verdict
	}{
		{"6.18", "vm.zone_reclaim_mode = 1", Harmful},
		{"6.18", "net.ipv4.tcp_frto = 0", Harmful},
		{"6.18", "net.ipv4.tcp_frto = 2", NowDefault},
		{"6.18", "options e1000e IntMode=0", Harmful},
		{"6.18", "net.ipv4.ipfrag_high_thresh = 262144", Harmful},
		{"6.18", "net.ipv4.ipfrag_high_thresh = 8388608", StillRight},
		{"6.18", "net.ipv4.udp_mem = 65536 131072 262144", Harmful},
		{"6.18", "net.ipv4.tcp_mem = 65536 131072 262144", Harmful},
		{"6.18", "net.ipv4.tcp_congestion_control = nonsense", Ignored},
		{"6.18", "net.ipv4.tcp_congestion_control = tsunami", Ignored},
		{"6.18", "net.ipv4.tcp_congestion_control = scalable-re", Ignored},
		{"6.18", "net.ipv4.tcp_congestion_control = scalable", StillRight},
		{"6.18", "net.core.default_qdisc = nonsense", Ignored},
		{"6.18", "net.core.default_qdisc = netem", Harmful},
		{"6.18", "net.ipv4.conf.all.arp_annouce = 2", Ignored},
		{"6.18", "net.ipv4.icmp_ignore_bogus_error_messages = 1", Ignored},
		{"6.18", "net.ipv6.conf.all.send_redirects = 0", Ignored},
		{"6.18", "net.ipv4.tcp_max_syn_backlog = 4", Ignored},
		{"6.18", "net.ipv4.tcp_max_syn_backlog = 100000", Ignored},
		{"4.3", "net.ipv4.tcp_max_syn_backlog = 100000", StillRight},
		{"6.18", "net.ipv4.ip_local_port_range = 1000 65535", Ignored},
		{"6.18", "net.ipv4.tcp_keepalive_time = 3", Harmful},
		{"6.18", "net.netfilter.nf_conntrack_tcp_timeout_established = 600", Harmful},
		{"6.18", "net.netfilter.nf_conntrack_tcp_timeout_established = 86400", StillRight},
		{"6.18", "net.ipv6.conf.all.accept_ra = 2", StillRight},
		{"6.18", "options e1000 InterruptThrottleRate=3", NowDefault},
		{"2.6.18", "options e1000 InterruptThrottleRate=3", Ignored},
	} {
		got := judged(t, Target{Release: release(t, Linux, c.release)}, c.text)
		if len(got) != 1 || got[0].Verdict != c.want {
			t.Errorf("%s, %q: %v, want %s", c.release, c.text, short(got), c.want)
		}
	}
	// One word, two meanings: only before 7.3 it is no adaptive mode.
	old := judged(t, Target{Release: release(t, Linux, "2.6.18")}, "options e1000 InterruptThrottleRate=1")[0]
	if !strings.Contains(old.Why, "No adaptive mode") {
		t.Errorf("InterruptThrottleRate=1 before 7.3: %s", old.Why)
	}
}

// TestDirectionOfAll: every setting of the kernel and of drivers in the catalogue has a fact, which
// knows what a value above or below the default does. "Exists and has its effect" is no judgement.
func TestDirectionOfAll(t *testing.T) {
	for _, d := range knob.Catalogue().All() {
		kind, _, _ := strings.Cut(string(d.Pattern), ":")
		if kind != knob.KindSysctl && kind != knob.KindModule {
			continue
		}
		switch d.Pattern {
		case "module:pcie_aspm/policy", "module:intel_idle/max_cstate", "module:processor/max_cstate",
			"module:cpufreq/default_governor":
			continue // sleep of CPUs and buses: no better direction
		case "sysctl:net.ipv4.tcp_mem", "sysctl:net.ipv4.udp_mem":
			continue // computed, see specials
		}
		if _, ok := factOf(Linux, strings.ReplaceAll(string(d.Pattern), "*", "eth0")); !ok {
			t.Errorf("%s has no fact", d.Pattern)
		}
	}
}

// TestDependent: tcp_max_syn_backlog counts in a text that turns cookies off.
func TestDependent(t *testing.T) {
	got := judged(t, Target{}, "net.ipv4.tcp_max_syn_backlog = 65536\nnet.ipv4.tcp_syncookies = 0\n")
	if got[0].Verdict != StillRight || got[1].Verdict != Harmful {
		t.Errorf("%v", short(got))
	}
}

// TestOpenValues: a value that the text leaves open is not refused; what holds for any value is
// said.
func TestOpenValues(t *testing.T) {
	for text, want := range map[string]Verdict{
		"net.core.rmem_max = $RMEM":                   Unknown,
		"net.core.rmem_max = ${RMEM:-4194304}":        Unknown,
		"net.core.rmem_max = {{ rmem_max }}":          Unknown,
		"net.core.rmem_max = <bytes>":                 Unknown,
		"net.core.rmem_max = @RMEM@":                  Unknown,
		"ethtool -G eth0 rx $RING":                    Unknown,
		"net.ipv4.tcp_tw_recycle = $X":                Removed,
		"net.ipv4.udp_wmem_min = {{ x }}":             Ignored,
		"net.core.rmem_max = 4194304</code>":          NowDefault,
		"net.core.rmem_max = 4194304<br />":           NowDefault,
		"net.ipv4.tcp_congestion_control = $ALGO":     Unknown,
		"echo $MASK > /proc/irq/$IRQ/smp_affinity":    Unknown,
		"net.core.rmem_max = nonsense":                Ignored,
		"sysctl -w net.ipv4.tcp_rmem='4096 87380 $M'": Unknown,
	} {
		got := judged(t, Target{Release: release(t, Linux, "6.18")}, text)
		if len(got) != 1 || got[0].Verdict != want {
			t.Errorf("%q: %v, want %s", text, short(got), want)
		}
	}
}

// TestSystemsOfBSD: sysctls of NetBSD, OpenBSD and macOS are not judged by the facts of FreeBSD.
func TestSystemsOfBSD(t *testing.T) {
	for _, c := range []struct {
		text string
		want []OS
	}{
		{"net.inet.tcp.sendspace=65536\nnet.inet.tcp.cc.algorithm=htcp", []OS{FreeBSD, FreeBSD}},
		{"net.inet.tcp.sendspace=65536\nkern.sbmax=1048576\nnet.inet.tcp.congctl.selected=cubic",
			[]OS{NetBSD, NetBSD, NetBSD}},
		{"# $NetBSD: sysctl.conf,v 1.8 $\nnet.inet.tcp.recvbuf_max?=1048576", []OS{NetBSD}},
		{"net.inet.tcp.win_scale_factor=8\nnet.inet.tcp.sendspace=65536", []OS{Darwin, Darwin}},
		{"# macOS\nnet.inet.tcp.delayed_ack=0", []OS{Darwin}},
		{"# macOS\nnet.inet.icmp.icmplim=50\nnet.inet.tcp.msl=1000", []OS{Darwin, Darwin}},
		{"# Kernel setup (Mac)\nnet.inet.tcp.msl=1000", []OS{Darwin}},
		{"# a mixed Windows/Mac office\nnet.inet.tcp.msl=1000", []OS{Darwin}},
		{"#!/bin/bash\nsudo sysctl -w net.inet.tcp.msl=1000", []OS{Darwin}},
		{"net.inet.tcp.msl=1000\ndscacheutil -flushcache", []OS{Darwin}},
		{"# macOS\nbrew install x\nnet.inet.tcp.cc.algorithm=cubic", []OS{Darwin}},
		{"# macOS and FreeBSD\nnet.inet.tcp.cc.algorithm=cubic", []OS{FreeBSD}},
		{"net.inet.tcp.tso=0\nX=/Users/x", []OS{Darwin}},
		{"sudo ifconfig en1 -tso\nsudo sysctl -w net.inet.tcp.tso=0", []OS{Darwin, Darwin}},
		{"# the Mac address\nnet.inet.tcp.msl=1000", []OS{FreeBSD}},
		{"# macOS\n<string>net.inet.tcp.msl=1000</string>", []OS{Darwin}},
		{"net.inet.ip.ifq.maxlen=2048\nnet.inet.ip.mtudisc=0", []OS{OpenBSD, OpenBSD}},
		{"kern.somaxconn=2048\nkern.bufcachepercent=20", []OS{OpenBSD, OpenBSD}},
		{"kern.somaxconn=2048", []OS{NetBSD}},
		{"net.inet.tcp.sendspace=65536", []OS{FreeBSD}},
		{"net.inet.tcp.cc.algorithm=htcp\nvm.swappiness=10", []OS{FreeBSD, FreeBSD}},
		{"net.inet.tcp.cc.algorithm=htcp\nvm.swappiness=10\nnet.ipv4.tcp_sack=1", []OS{FreeBSD, Linux, Linux}},
		// Heads of a page name the systems of their sections.
		{"## FreeBSD\n```\nnet.inet.tcp.sendspace=65536\n```\n## NetBSD\n```\nnet.inet.tcp.sendspace=65536\n```\n",
			[]OS{FreeBSD, NetBSD}},
	} {
		a, err := Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var got []OS
		for _, s := range a.Settings {
			got = append(got, s.OS)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
	got := judged(t, Target{}, "kern.sbmax=65536\nnet.inet.tcp.sendbuf_auto=1\n")
	if got[0].Verdict != Harmful || got[0].For != NetBSD || got[1].Verdict != NowDefault {
		t.Errorf("NetBSD: %v", short(got))
	}
	// Defaults and names of macOS differ from those of FreeBSD, and so do the verdicts.
	for text, want := range map[string]Verdict{
		"net.inet.tcp.win_scale_factor=8": StillRight, "net.inet.tcp.delayed_ack=0": Harmful,
		"net.inet.tcp.sendspace=131072": NowDefault, "net.inet.tcp.sendspace=65536": Harmful,
		"net.inet.tcp.rfc1323=1": Removed, "net.inet.tcp.sendbuf_max=2097152": Ignored,
		"net.inet.tcp.cc.algorithm=htcp": Ignored, "net.inet.tcp.cubic_fast_convergence=1": StillRight,
		"net.inet.tcp.keepidle=3600": Harmful, "net.inet.udp.sendspace=65536": Ignored,
		"kern.ipc.somaxconn=1024": StillRight, "kern.maxfiles=65536": Unknown,
		"net.inet.ip.check_interface=1": NowDefault, "net.inet.tcp.tso=0": Harmful,
	} {
		if got := judged(t, Target{}, "# macOS\n"+text+"\n"); got[0].Verdict != want || got[0].For != Darwin {
			t.Errorf("macOS: %s: %s for %s: %s", text, got[0].Verdict, got[0].For, got[0].Why)
		}
	}
}
