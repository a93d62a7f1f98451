package advice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestFoundInTheWild judges lines from scripts, profiles and pages that users pass on, and compares
// the verdicts with an expert's. Each line was once left out, misread or judged wrongly.
func TestFoundInTheWild(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		// Forms.
		{"short name of a feature", "ethtool -K eth0 rxvlan off",
			"ethtool:eth0/feature.rx-vlan-hw-parse = off: still-right"},
		{"long name of a feature", "ethtool -K eth0 generic-receive-offload off",
			"ethtool:eth0/feature.rx-gro = off: harmful"},
		{"private flag", "ethtool --set-priv-flags eth0 rx_cqe_compress on",
			"ethtool:eth0/flag.rx_cqe_compress = on: still-right"},
		{"table of a card", "ethtool -X eth0 equal 8", "ethtool:eth0/rss.indirection = equal 8: still-right"},
		{"key of a card", "ethtool -X eth0 hkey 6d:5a", ": unknown"},
		{"hash of a card", "ethtool -N eth0 rx-flow-hash udp4 sdfn", "ethtool:eth0/rxhash.udp4 = sdfn: still-right"},
		{"flow rule", "ethtool -U eth0 flow-type tcp4 dst-port 80 action 2", ": unknown"},
		{"error correction", "ethtool --set-fec eth0 encoding rs", "ethtool:eth0/fec = rs: still-right"},
		{"tunable", "ethtool --set-tunable eth0 rx-copybreak 0", "ethtool:eth0/tunable.rx-copybreak = 0: still-right"},
		{"merged packets", "ip link set dev eth0 gro_max_size 185000", "link:eth0/gro_max_size = 185000: still-right"},
		{"loop over queues", "for q in /sys/class/net/eth0/queues/rx-*; do echo ff > $q/rps_cpus; done",
			"queue:eth0/rx-*/rps_cpus = ff: still-right"},
		{"file of another part", "echo never > /sys/kernel/mm/transparent_hugepage/enabled", ": unknown"},
		{"profile of TuneD", "net.core.somaxconn=>2048", "net.core.somaxconn = >2048: now-default"},
		{"profile of TuneD that raises", "net.core.somaxconn = > 16384", "net.core.somaxconn = > 16384: still-right"},
		{"memory of Linux", "vm.stat_interval=10", "vm.stat_interval = 10: unknown"},
		{"shell in a command", "sudo bash -c 'echo 1 > /proc/sys/net/ipv4/tcp_low_latency'",
			"net.ipv4.tcp_low_latency = 1: ignored"},
		{"kernel command line",
			`GRUB_CMDLINE_LINUX_DEFAULT="quiet net.ifnames=0 intel_idle.max_cstate=0 isolcpus=2-15"`,
			"module:intel_idle/max_cstate = 0: still-right"},
		{"ports of Windows", "netsh int ipv4 set dynamicport tcp start=1025 num=64510",
			"netsh:ip/dynamicport = 1025 64510: still-right"},
		{"cmdlet", "Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Disabled",
			"netsh:tcp/autotuninglevel = disabled: harmful"},
		{"cmdlet for one thing", `PS C:\> Disable-NetAdapterRss -Name "Ethernet"`, "netsh:tcp/rss = disabled: harmful"},
		{"cmdlet for the registry",
			`New-ItemProperty -Path "HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" ` +
				`-Name "DisableTaskOffload" -Value 1 -PropertyType DWORD`,
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\DisableTaskOffload = 1: harmful`},

		{"a sentence behind a number", "net.ipv4.tcp_tw_reuse = 1 allows sockets in TIME-WAIT state to be reused",
			"net.ipv4.tcp_tw_reuse = 1: still-right"},
		{"config.xml of OPNsense", "<tunable>net.inet.tcp.blackhole</tunable>\n<value>2</value>",
			"net.inet.tcp.blackhole = 2: still-right"},
		{"cmdlet for virtual machines",
			"Get-VMNetworkAdapter -VMName $VM | Set-VMNetworkAdapter -IovWeight 100", ": unknown"},
		{"beginning of an option", "netsh int ipv6 set global randomizeidentifier=disabled",
			"netsh:ipv6/randomizeidentifiers = disabled: still-right"},

		// Disciplines that the kernel has and the catalogue does not set.
		{"simulator", "tc qdisc add dev eth0 root netem delay 100ms", "qdisc:eth0/root = netem: harmful"},
		{"shaper", "tc qdisc add dev eth0 root htb default 30", "qdisc:eth0/root = htb: still-right"},
		{"no queue", "tc qdisc add dev eth0 root noqueue", "qdisc:eth0/root = noqueue: harmful"},
		{"gone", "tc qdisc add dev eth0 root cbq bandwidth 10mbit", "qdisc:eth0/root = cbq: removed"},

		// Values.
		{"default limit, smaller start", "net.ipv4.tcp_rmem = 4096 65536 33554432",
			"net.ipv4.tcp_rmem = 4096 65536 33554432: harmful"},
		{"default limit, nearly the start", "net.ipv4.tcp_rmem = 4096 87380 33554432",
			"net.ipv4.tcp_rmem = 4096 87380 33554432: still-right"},
		{"experiment of Windows", "netsh int tcp set supplemental template=internet congestionprovider=bbr2",
			"netsh:tcp/congestionprovider = bbr2: harmful"},
		{"name of an accept queue", "kern.ipc.acceptqueue_limit=16384", "kern.ipc.acceptqueue_limit = 16384: ignored"},
		{"optics", "ethtool -s eth0 speed 10000 duplex full autoneg off",
			"ethtool:eth0/link.forced = 10000/full: still-right"},
		{"first window", "ip route change default via 10.0.0.1 initrwnd 10", "route:default/initrwnd = 10: harmful"},
		{"merged in the card", "ethtool -K eth0 lro on", "ethtool:eth0/feature.rx-lro = on: still-right"},
		{"ports of services", "net.ipv4.ip_local_port_range = 1024 65535",
			"net.ipv4.ip_local_port_range = 1024 65535: still-right"},
		{"tail loss probe off", "net.ipv4.tcp_early_retrans = 1", "net.ipv4.tcp_early_retrans = 1: harmful"},
		{"resets for a burst", "net.ipv4.tcp_abort_on_overflow = 1", "net.ipv4.tcp_abort_on_overflow = 1: harmful"},
		{"buffers of one size", "net.ipv4.tcp_wmem = 30000000 30000000 30000000",
			"net.ipv4.tcp_wmem = 30000000 30000000 30000000: harmful"},
		{"small start", "net.ipv4.tcp_wmem = 1024 4096 16777216", "net.ipv4.tcp_wmem = 1024 4096 16777216: harmful"},
		{"small start of receiving", "net.ipv4.tcp_rmem = 1024 4096 67108864",
			"net.ipv4.tcp_rmem = 1024 4096 67108864: harmful"},
		{"usual start", "net.ipv4.tcp_rmem = 4096 87380 67108864",
			"net.ipv4.tcp_rmem = 4096 87380 67108864: still-right"},
		{"queue for neighbours", "net.ipv4.neigh.default.unres_qlen = 6",
			"net.ipv4.neigh.default.unres_qlen = 6: harmful"},
		{"no effect", "net.ipv4.udp_wmem_min = 16384", "net.ipv4.udp_wmem_min = 16384: ignored"},
		{"an order", "net.ipv4.route.flush = 1", "net.ipv4.route.flush = 1: ignored"},
		{"scheduler", "kernel.sched_min_granularity_ns = 10000000",
			"kernel.sched_min_granularity_ns = 10000000: removed"},
		{"Solaris, too little time for a delayed answer", "ndd -set /dev/tcp tcp_rexmit_interval_min 25",
			"ndd:tcp/tcp_rexmit_interval_min = 25: harmful"},
		{"illumos, the first answer", "ipadm set-prop -p _rexmit_interval_initial=150 tcp",
			"ipadm:tcp/_rexmit_interval_initial = 150: harmful"},
		{"option that moved to templates", "netsh int tcp set global congestionprovider=ctcp",
			"netsh:tcp/global.congestionprovider = ctcp: removed"},
		{"the same for a template", "netsh int tcp set supplemental Internet congestionprovider=ctcp",
			"netsh:tcp/congestionprovider = ctcp: still-right"},
		{"Solaris, twice the default", "ndd -set /dev/tcp tcp_rexmit_interval_min 3000",
			"ndd:tcp/tcp_rexmit_interval_min = 3000: harmful"},
		{"FreeBSD, a burst", "net.inet.tcp.abc_l_var=44", "net.inet.tcp.abc_l_var = 44: harmful"},
		{"Windows, no value of TCP", "TCPNoDelay 1",
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\*\TCPNoDelay = 1: ignored`},
		{"fixed by today", "net.ipv4.tcp_challenge_ack_limit = 999999999",
			"net.ipv4.tcp_challenge_ack_limit = 999999999: now-default"},

		// Of files that no earlier set has, 2026-11-26.
		{"negotiates everything", "ethtool -s p0 autoneg on", "ethtool:p0/link.advertised = autonegotiation: now-default"},
		{"offers one speed", "ethtool -s p0 speed 100 duplex full autoneg on",
			"ethtool:p0/link.advertised = 100/full autonegotiation: still-right"},
		{"not in order, and accepted", "net.ipv4.tcp_mem = 94500000 91500000 92700000",
			"net.ipv4.tcp_mem = 94500000 91500000 92700000: harmful"},
		{"a buffer that never grows", "net.ipv4.tcp_wmem = 4096 65536 32768",
			"net.ipv4.tcp_wmem = 4096 65536 32768: harmful"},
		{"ports not in order", "net.ipv4.ip_local_port_range = 65000 1024",
			"net.ipv4.ip_local_port_range = 65000 1024: ignored"},
		{"set by a daemon alone", "net.ipv4.conf.all.mc_forwarding = 0", "net.ipv4.conf.all.mc_forwarding = 0: ignored"},
		{"a figure", "net.netfilter.nf_conntrack_count = 65536", "net.netfilter.nf_conntrack_count = 65536: ignored"},
		{"nothing reads it", "net.ipv4.neigh.default.gc_interval = 30", "net.ipv4.neigh.default.gc_interval = 30: ignored"},
		{"interface behind dev", "ip link set mtu 9000 dev eth1", "link:eth1/mtu = 9000: still-right"},
		{"interface from a list", "ls /sys/class/net | xargs -n1 ip link set txqueuelen 1000", ": unknown"},
		{"command that goes into a script", `echo "ethtool -K \$2 tso off" | sudo tee -a /etc/net/offload`,
			"ethtool:$2/feature.tx-tcp-segmentation = off: harmful"},
		{"init of Android", "write /proc/sys/net/core/rmem_default 131072", "net.core.rmem_default = 131072: harmful"},
		{"property of Android", "setprop net.tcp.buffersize.wifi 4096,87380,110208,4096,16384,110208", ": unknown"},
		{"program of many names", "busybox sysctl -w net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack = 0: harmful"},
		{"switch of the cmdlet", "Set-NetAdapterRss -Name Ethernet -Enabled $true",
			"adapter:*/rss.enabled = enabled: now-default"},
		{"off by the cmdlet", "Set-NetAdapterRss -Name Ethernet -Enabled $false",
			"adapter:*/rss.enabled = disabled: harmful"},
		{"chosen before", `Get-NetAdapterAdvancedProperty -Name eth -DisplayName "*Large Send*" | ` +
			`Set-NetAdapterAdvancedProperty -RegistryValue 0`, "adapter:eth/Large Send = 0: harmful"},
		{"moved to the interface", "net.link.lagg.0.use_flowid=0", "net.link.lagg.0.use_flowid = 0: removed"},
		{"hash of a recipe", "default['sysctl']['tcp_mem'] = \"8388608 8388608 8388608\"",
			"net.ipv4.tcp_mem = 8388608 8388608 8388608: harmful"},
		{"line for /etc/system", `echo "set nfs:nfs3_bsize = 131072" >> /etc/system`,
			"system:nfs/nfs3_bsize = 131072: still-right"},
		{"property without its dash", "ipadm set-prop -p send_redirects=off ipv4",
			"ipadm:ipv4/send_redirects = off: still-right"},
		{"sysctl of NetBSD alone", "sysctl -w net.inet.tcp.delack_ticks=3", "net.inet.tcp.delack_ticks = 3: still-right"},
		{"step of NetBSD as it is", "# NetBSD\nnet.inet.tcp.sendbuf_inc=8192\n",
			"net.inet.tcp.sendbuf_inc = 8192: now-default"},
		{"step of NetBSD as it is", "# NetBSD\nnet.inet.tcp.recvbuf_inc=16384\n",
			"net.inet.tcp.recvbuf_inc = 16384: now-default"},
		{"another step of NetBSD", "# NetBSD\nnet.inet.tcp.recvbuf_inc=65536\n",
			"net.inet.tcp.recvbuf_inc = 65536: still-right"},
		{"function of a batch file", `call :reg "%K_TP%" TcpTimedWaitDelay REG_DWORD 30`,
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpTimedWaitDelay = 30: still-right`},
		{"program of a store", `ExecStart = "${pkgs.ethtool}/bin/ethtool --set-ring enp1s0f0 rx 4096";`,
			"ethtool:enp1s0f0/ring.rx = 4096: still-right"},
		{"row of a table", "| `net.igc.num_queues` | 4 | 1 | Queues of the NIC |", ": unknown"},
		{"NIC in a variable of a loop", `for /f %%n in ('reg query "HKLM\SYSTEM\CurrentControlSet\Control\Class\` +
			`{4D36E972-E325-11CE-BFC1-08002BE10318}" /s ^| findstr "HKEY"') do (` + "\n" +
			`reg add "%%n" /v "*TCPConnectionOffloadIPv4" /t REG_SZ /d "0" /f`, `registry:HKLM\SYSTEM\CurrentControlSet\` +
			`Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\%%n\*TCPConnectionOffloadIPv4 = 0: ignored`},
		{"function with a number", `Edit-RegistryEntry "HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" ` +
			`"MaxUserPort" -Hex "fffe"`, `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\` +
			"MaxUserPort = 65534: ignored"},
		{"tunnel by a cmdlet", "Set-NetTeredoConfiguration -Type Disabled", "netsh:teredo/state = disabled: now-default"},
		{"fewer ports", "netsh int ipv4 set dynamicport tcp start=10000 num=3000",
			"netsh:ip/dynamicport = 10000 3000: harmful"},
		{"driver of IPv6", "ndd -set /dev/ip6 ip6_send_redirects 0", "ndd:ip/ip6_send_redirects = 0: still-right"},
		{"slots of NetApp", "sunrpc.tcp_max_slot_table_entries=128", "sunrpc.tcp_max_slot_table_entries = 128: still-right"},
		{"fewer slots", "sunrpc.tcp_max_slot_table_entries=2", "sunrpc.tcp_max_slot_table_entries = 2: harmful"},
		{"live connection forgotten", "net.netfilter.nf_conntrack_tcp_timeout_max_retrans = 3",
			"net.netfilter.nf_conntrack_tcp_timeout_max_retrans = 3: harmful"},
		{"checksums of both", `reg add "HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce}\0000" /v ` +
			`"*TCPUDPChecksumOffloadIPv4" /d 0`, `registry:HKLM\SYSTEM\CurrentControlSet\Control\Class\` +
			`{4d36e972-e325-11ce}\0000\*TCPUDPChecksumOffloadIPv4 = 0: harmful`},
		{"modules of NixOS", "boot.kernelModules = [ \"tcp_bbr\" ];\nnet.ipv4.tcp_sack = 1",
			"net.ipv4.tcp_sack = 1: now-default"},
		{"much for each socket", "net.ipv4.udp_rmem_min = 20971520", "net.ipv4.udp_rmem_min = 20971520: harmful"},
		{"load balancer of the kernel", "net.ipv4.vs.conn_reuse_mode=0", "net.ipv4.vs.conn_reuse_mode = 0: still-right"},
		{"its default", "net.ipv4.vs.sync_threshold = 3 50", "net.ipv4.vs.sync_threshold = 3 50: now-default"},
		{"interface of another protocol", "net.mpls.conf.eth0.input=1", "net.mpls.conf.eth0.input = 1: still-right"},
		{"smaller start", "net.smc.rmem=16384", "net.smc.rmem = 16384: harmful"},
		{"errors elsewhere", `echo "ff" > /sys/class/net/eth0/queues/tx-$i/xps_cpus 2>/dev/null`,
			"queue:eth0/tx-$i/xps_cpus = ff: still-right"},
		{"function that runs a command", "run ethtool -K $ifc tso off",
			"ethtool:$ifc/feature.tx-tcp-segmentation = off: harmful"},
		{"function with a remark", `check_and_set "net.ipv4.vs.conn_reuse_mode" "0" "reuse of ports"`,
			"net.ipv4.vs.conn_reuse_mode = 0: still-right"},
		{"string within a string", `SUBSYSTEM==\"net\", PROGRAM=\"/usr/sbin/ethtool -K %k tso off\"`,
			"ethtool:%k/feature.tx-tcp-segmentation = off: harmful"},
		{"variable that runs a command", "$SUDO ip link set dev \"$dev\" mtu 9000",
			"link:$dev/mtu = 9000: still-right"},
		{"unit of systemd", "ExecStartPost=-/bin/bash -c 'echo 2 > /sys/class/net/wg0/queues/rx-0/rps_cpus || true'",
			"queue:wg0/rx-0/rps_cpus = 2: still-right"},
		{"default that changed", "net.link.lagg.default_use_flowid=0", "net.link.lagg.default_use_flowid = 0: now-default"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judged(t, Target{Release: release(t, Linux, "6.18")}, c.text+"\n")
			if diff := cmp.Diff([]string{c.want}, short(got)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

// TestBlockOfNix: the head of a block of settings is no setting.
func TestBlockOfNix(t *testing.T) {
	got := judged(t, Target{}, "  kernel = {\n    sysctl = {\n      \"net.ipv4.tcp_sack\" = 0;\n    };\n  };\n")
	if diff := cmp.Diff([]string{"net.ipv4.tcp_sack = 0: harmful"}, short(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = judged(t, Target{}, "  boot.kernel.sysctl.\"net.ipv4.tcp_sack\" = 0;\n"+
		"  boot.kernel.sysctl.\"net.ipv4.tcp_fin_timeout\" = lib.mkForce 60;\n"+
		"  sysctl.\"net.core.default_qdisc\" = \"fq\";\n")
	if diff := cmp.Diff([]string{"net.ipv4.tcp_sack = 0: harmful", "net.ipv4.tcp_fin_timeout = 60: now-default",
		"net.core.default_qdisc = fq: still-right"}, short(got)); diff != "" {
		t.Errorf("names behind their path (-want +got):\n%s", diff)
	}
	got = judged(t, Target{},
		"boot.kernel.sysctl = { \"net.ipv4.tcp_sack\" = 0; \"net.core.default_qdisc\" = \"fq\"; };\n")
	if diff := cmp.Diff([]string{"net.ipv4.tcp_sack = 0: harmful", "net.core.default_qdisc = fq: still-right"},
		short(got)); diff != "" {
		t.Errorf("a set on one line (-want +got):\n%s", diff)
	}
}

// TestUnits: a unit of systemd runs programs, most of which set nothing, and an empty line takes
// back those before it.
func TestUnits(t *testing.T) {
	text := "[Service]\nType=oneshot\nExecStart=\nExecStart=/usr/bin/wg-quick up %i\n"
	if got := judged(t, Target{}, text); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := judged(t, Target{}, text+"EOF\nsome.setting = 1\n"); len(got) != 1 || got[0].Verdict != Unknown {
		t.Errorf("behind the unit: %+v", got)
	}
}

// TestSharedNames: names of the queue in front of IP are NetBSD's in a text of NetBSD, and
// OpenBSD's elsewhere.
func TestSharedNames(t *testing.T) {
	for text, want := range map[string]OS{
		"net.inet.tcp.init_win=10\nnet.inet.ip.ifq.maxlen=4096\n":  NetBSD,
		"kern.sbmax=16777216\nnet.inet.tcp.recvbuf_inc=262144\n":   NetBSD,
		"net.inet.tcp.recvbuf_inc=262144\n":                        FreeBSD,
		"kern.bufcachepercent=50\nnet.inet6.ip6.ifq.maxlen=1024\n": OpenBSD,
		"net.inet.ip.ifq.maxlen=1024\n":                            OpenBSD,
	} {
		got := judged(t, Target{}, text)
		if last := got[len(got)-1]; last.For != want {
			t.Errorf("%q is of %s, want %s", text, last.For, want)
		}
	}
}

// TestTrees: the two systems share the first word vm, and a name of Linux there is not taken for
// FreeBSD's.
func TestTrees(t *testing.T) {
	for name, want := range map[string]OS{
		"vm.stat_interval": Linux, "vm.nr_hugepages": Linux, "vm.watermark_scale_factor": Linux,
		"vm.pmap.pg_ps_enabled": FreeBSD, "vm.overcommit": FreeBSD,
	} {
		if got, ok := sysctlOS(name); got != want || !ok {
			t.Errorf("%s is of %q", name, got)
		}
	}
}

// TestVariables: a script's own variables have the form of settings and are none; outside of a
// script the same line could be one.
func TestVariables(t *testing.T) {
	a, err := Parse([]byte("#!/bin/bash\nIF=${1:-eth0}\nexport CPUS=ff\nethtool -K $IF tso off\n"))
	if err != nil || len(a.Settings) != 1 || len(a.Unread) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestRepeated: of two lines for one setting the last one counts, and the reason for the first says
// so. The verdict does not change. The same value twice, another interface or any interface adds no
// such remark.
func TestRepeated(t *testing.T) {
	got := judged(t, Target{},
		"net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_sack=1\nnet.ipv4.tcp_dsack=0\nnet.ipv4.tcp_dsack=0\nMTU=9000\nMTU=1500\n")
	if want := "Line 2 sets it to 1, and the last one counts."; got[0].Verdict != Harmful ||
		!strings.HasSuffix(got[0].Why, want) {
		t.Errorf("%s: %q, want it to end in %q", got[0].Verdict, got[0].Why, want)
	}
	for _, j := range got[1:] {
		if strings.Contains(j.Why, "last one counts") {
			t.Errorf("line %d: %s", j.Line, j.Why)
		}
	}
}

// TestCommentedContinuation: a backslash at the end of a comment hides no setting below it; behind
// a prompt it goes on.
func TestCommentedContinuation(t *testing.T) {
	for text, want := range map[string]string{
		"# see C:\\\nnet.ipv4.tcp_sack = 0\n":             "net.ipv4.tcp_sack = 0: harmful",
		"; a list of \\\nnet.ipv4.tcp_sack = 0\n":         "net.ipv4.tcp_sack = 0: harmful",
		"# sysctl -w \\\n  net.ipv4.tcp_sack=0\n":         "net.ipv4.tcp_sack = 0: harmful",
		"sysctl -w \\\n  net.ipv4.tcp_sack=0 # both \\\n": "net.ipv4.tcp_sack = 0: harmful",
	} {
		if diff := cmp.Diff([]string{want}, short(judged(t, Target{}, text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestLongName: a name as long as a text may be is judged as quickly as any other line; patterns
// with several stars would try every pair of places in it, and not be done in a day.
func TestLongName(t *testing.T) {
	testenv.Need(t, testenv.Long)
	text := "net.ipv4" + strings.Repeat(".conf.", MaxBytes/6-10) + "=1"
	if got := judged(t, Target{}, text); len(got) != 1 || got[0].Verdict != Unknown {
		t.Errorf("%d judgements", len(got))
	}
}
