package advice

import (
	"slices"
	"testing"
)

// TestPrograms: forms of programs and configuration tools that were silent or listed before set AQ,
// most of them typed beside its files.
func TestPrograms(t *testing.T) {
	const link = "systemd.network.links.\"10-x\" = {\nmatchConfig.OriginalName = \"eth0\";\nlinkConfig = {\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"names of AKS", "sysctls: {\n\"netCoreSomaxconn\": 163849,\nnetIpv4TcpTwReuse: true\n" +
			"netIpv4TcpkeepaliveIntvl: 5\n}", []string{
			"net.core.somaxconn = 163849: still-right", "net.ipv4.tcp_tw_reuse = 1: still-right",
			"net.ipv4.tcp_keepalive_intvl = 5: still-right"}},
		{"names of Terraform", "sysctl_config {\nnet_ipv4_ip_local_port_range_max = 60000\n" +
			"net_ipv4_ip_local_port_range_min = 1024\nnet_core_netdev_max_backlog = 100\n}", []string{
			"net.ipv4.ip_local_port_range = 1024 60000: still-right", "net.core.netdev_max_backlog = 100: harmful"}},
		{"a file that Go writes", "os.WriteFile(\"/proc/sys/net/ipv4/tcp_sack\", []byte(\"0\\n\"), 0o644)",
			[]string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"one with a variable", `os.WriteFile("/proc/sys/net/ipv4/conf/"+name+"/forwarding", []byte("1"), 0644)`,
			[]string{"net.ipv4.conf.${name}.forwarding = 1: still-right"}},
		{"files of JavaScript and Python", "fs.writeFileSync('/proc/sys/net/ipv4/tcp_sack', '0');\n" +
			"open('/proc/sys/net/ipv4/tcp_window_scaling', 'w').write('0')\n" +
			"Path(\"/proc/sys/net/ipv4/tcp_timestamps\").write_text(\"0\")", []string{
			"net.ipv4.tcp_sack = 0: harmful", "net.ipv4.tcp_window_scaling = 0: harmful",
			"net.ipv4.tcp_timestamps = 0: harmful"}},
		{"a file that a block writes", "with open('/proc/sys/net/ipv4/ip_forward', 'w') as f:\n" +
			"  f.write('1' if on else '0')",
			[]string{"net.ipv4.ip_forward = 1: still-right", "net.ipv4.ip_forward = 0: now-default"}},
		{"a file that is read", "with open('/proc/sys/net/ipv4/tcp_sack', 'r') as f:\n  print(f.read() == '0')", nil},
		{"pairs on one line", `const c = { 'net.ipv4.tcp_sack': 0, "net.core.somaxconn": "128" };`, []string{
			"net.ipv4.tcp_sack = 0: harmful", "net.core.somaxconn = 128: harmful"}},
		{"tuples", `all = [("net.ipv4.tcp_sack", 0), ("net.core.somaxconn", 128)]`, []string{
			"net.ipv4.tcp_sack = 0: harmful", "net.core.somaxconn = 128: harmful"}},
		{"a hash of Puppet", `$h = { 'net.ipv4.tcp_sack' => { 'value' => 0 }, }`,
			[]string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"a resource on one line", "sysctl { 'net.ipv4.tcp_sack': ensure => 'present', value => '0', permanent => 'yes', }",
			[]string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"lines in one string", `f.write("net.ipv4.tcp_sack=0\nnet.core.somaxconn=128\n")`, []string{
			"net.ipv4.tcp_sack = 0: harmful", "net.core.somaxconn = 128: harmful"}},
		{"a command that Rust builds",
			"Command::new(\"ethtool\")\n.args(&[\"-K\", \"eth0\", \"gro\", \"off\"])\n.status();",
			[]string{"ethtool:eth0/feature.rx-gro = off: harmful"}},
		{"a link of NixOS", link + "MTUBytes = \"9000\";\nGenericSegmentationOffload = false;\n};\n};\nRxBufferSize = 1;",
			[]string{"link:eth0/mtu = 9000: still-right", "ethtool:eth0/feature.tx-generic-segmentation = off: harmful",
				"driver:e1000g/RxBufferSize = 1: still-right"}},
		{"interfaces of NixOS",
			"networking.interfaces.eth0.mtu = 9000;\nnetworking.interfaces = { eth1 = { mtu = 9000; }; };",
			[]string{"link:eth0/mtu = 9000: still-right", "link:eth1/mtu = 9000: still-right"}},
		{"disciplines of networkd", "[Match]\nName=eth0\n[FairQueueing]\nPacketLimit=100\n[CAKE]\nParent=1:10\n",
			[]string{"qdisc:eth0/root = fq: still-right"}},
		{"a route of networkd", "[Route]\nDestination=10.0.0.0/8\nInitialCongestionWindow=30\n[Route]\nQuickAck=yes\n",
			[]string{"route:10.0.0.0/8/initcwnd = 30: still-right", "route:default/quickack = 1: still-right"}},
		{"options of ifcfg", `ETHTOOL_OPTS="-K ${DEVICE} gro off; -G ${DEVICE} rx 4096"` + "\n" +
			`ETHTOOL_OPTIONS_x='-K iface tso off'`, []string{"ethtool:${DEVICE}/feature.rx-gro = off: harmful",
			"ethtool:${DEVICE}/ring.rx = 4096: still-right", "ethtool:*/feature.tx-tcp-segmentation = off: harmful"}},
		{"a state of Salt", "ethtool -K eth0 gro off:\n  cmd.run", []string{"ethtool:eth0/feature.rx-gro = off: harmful"}},
		{"a resource of DSC", "NetAdapterRsc X\n{\nName = 'a'\nState = $false\n} # HKLM: registry",
			[]string{"netsh:tcp/rsc = disabled: harmful"}},
		{"a list that takes back", "apply: ['netsh int tcp set global rss=disabled'], " +
			"undo: ['netsh int tcp set global rss=enabled']",
			[]string{"netsh:tcp/rss = disabled: harmful"}},
		{"comments of PowerShell",
			`# reg add "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" /v DefaultTTL /d 1 /f` +
				"\n#     Disable-NetAdapterLso -Name x", nil},
	} {
		if got := short(judged(t, Target{}, c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRepeats: loops whose items the text writes out.
func TestRepeats(t *testing.T) {
	want := []string{"net.ipv4.conf.all.rp_filter = 0: now-default", "net.ipv4.conf.default.rp_filter = 0: now-default"}
	for _, c := range []struct{ name, text string }{
		{"items on a line",
			"- sysctl:\n    name: net.ipv4.conf.{{ item }}.rp_filter\n    value: 0\n  loop: [all, default]"},
		{"items below it", "- sysctl:\n    name: \"{{ item }}\"\n    value: '0'\n  with_items:\n" +
			"    - net.ipv4.conf.all.rp_filter\n    - 'net.ipv4.conf.default.rp_filter'\n- debug:\n    msg: x"},
		{"items with fields", "- sysctl: name=net.ipv4.conf.{{ item.if }}.rp_filter value={{ item['v'] }}\n" +
			"  loop:\n    - { if: all, v: 0 }\n    - if: default\n      v: 0"},
		{"Jinja", "{% for i in ['all', 'default'] %}\nnet.ipv4.conf.{{ i }}.rp_filter = 0\n{% endfor %}"},
		{"Ruby", "%w(all default).each do |i|\n  sysctl \"net.ipv4.conf.#{i}.rp_filter\" do\n" +
			"    value 0\n  end\nend"},
		{"Puppet", "['all','default'].each |$i| {\n  sysctl { \"net.ipv4.conf.${i}.rp_filter\": value => '0' }\n}"},
		{"Python", "names = [\"all\", \"default\"]\nfor i in names:\n" +
			"    os.system(f\"sysctl -w net.ipv4.conf.{i}.rp_filter=0\")"},
		{"Go", "for _, i := range []string{\"all\", \"default\"} {\n" +
			"\tos.WriteFile(\"/proc/sys/net/ipv4/conf/\"+i+\"/rp_filter\", []byte(\"0\"), 0644)\n}"},
	} {
		if got := short(judged(t, Target{}, c.text)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestRepeatsAreBounded: loops within loops become no more than the bound.
func TestRepeatsAreBounded(t *testing.T) {
	text := ""
	for indent := range 6 {
		text += "          "[:indent] + "for i in [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z]:\n"
	}
	a, err := Parse([]byte(text + "          x(\"net.ipv4.tcp_sack=0\")\n"))
	if err != nil || len(a.Settings) > mostRepeated {
		t.Fatal(len(a.Settings), err)
	}
}
