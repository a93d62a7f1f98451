package advice

import (
	"slices"
	"testing"
)

// TestFields: settings whose parts are fields, constants or entries around them, and files within
// strings: forms that were silent or listed before set AS.
func TestFields(t *testing.T) {
	const mtu = "link:eth0/mtu = 9000: still-right"
	const sack = "net.ipv4.tcp_sack = 0: harmful"
	const gro = "ethtool:eth0/feature.rx-gro = off: harmful"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a file in a string", `x=$'[FairQueueing]\nParent=root'`, []string{"qdisc:*/root = fq: still-right"}},
		{"lines in a string", `printf %s $'net.ipv4.tcp_sack = 0\nnet.core.somaxconn = 128\n' > /etc/sysctl.d/9.conf`,
			[]string{sack, "net.core.somaxconn = 128: harmful"}},
		{"a key in a constant", "const key = 'net.ipv4.tcp_sack';\nconst c = {\n[key]: 0,\n};", []string{sack}},
		{"keys on one line",
			`const K = "net.ipv4.tcp_sack", W = 'net.ipv4.tcp_window_scaling'` + "\no = { [K]: '0', [W]: 0 }",
			[]string{sack, "net.ipv4.tcp_window_scaling = 0: harmful"}},
		{"a key that changes", "let key = 'net.ipv4.tcp_sack';\nfor (key = first();;)\nc[key] = 0;", nil},
		{"an index", "let k = 'net.core.somaxconn';\nsettings[k] = 128;", []string{"net.core.somaxconn = 128: harmful"}},
		{"a constant of a class", "class Names:\n    SACK = \"net.ipv4.tcp_sack\"\nwrite(Names.SACK, 0)\n", []string{sack}},
		{"a constant of Go", "const sack = \"net/ipv4/tcp_sack\"\n\tset(sack, \"0\")\n", []string{sack}},
		{"a program and its words", `{"command": "sysctl", "args": ["-w", "net.ipv4.tcp_sack=0"]}`, []string{sack}},
		{"words on lines", "{\n\"command\": \"ethtool\",\n\"args\": [\n\"-K\",\n\"eth0\",\n\"gro\",\n\"off\"\n]\n}",
			[]string{gro}},
		{"words of YAML", "command:\n- ethtool\nargs:\n- -K\n- eth0\n- gro\n- off\n", []string{gro}},
		{"other fields between", "- command: [ethtool]\n  image: x\n  args: [-K, eth0, gro, off]\n", []string{gro}},
		{"Ansible's nmcli", "- community.general.nmcli:\n    conn_name: lan\n    mtu: 9000\n    ifname: eth0\n",
			[]string{mtu}},
		{"its short form", "- nmcli: conn_name=eth0 type=ethernet mtu=9000 state=present", []string{mtu}},
		{"a list for it", "nmcli_ethernet:\n  - conn_name: eth0\n    mtu: 9000\n", []string{mtu}},
		{"nmstate", "interfaces:\n- name: eth0\n  type: ethernet\n  mtu: 9000\n  ethtool:\n" +
			"    feature:\n      gro: false\n    ring:\n      rx: 4096\n", []string{
			mtu, gro, "ethtool:eth0/ring.rx = 4096: still-right"}},
		{"an entry of something else", "name: eth0\nmtu: 9000\n", nil},
		{"metrics of networkd", "[Route]\nTCPCongestionControlAlgorithm=bbr\nTCPRetransmissionTimeoutSec=100ms\n", []string{
			"route:default/congctl = bbr: still-right", "route:default/rto_min = 100: still-right"}},
		{"metrics of ip", "ip route change default via 10.0.0.1 congctl bbr rto_min 1s", []string{
			"route:default/congctl = bbr: still-right", "route:default/rto_min = 1000: still-right"}},
		{"a remark in wide parentheses", "- net.ipv4.tcp_sack=0（x）", []string{sack}},
		{"a network of Docker", "driver_opts:\n  com.docker.network.driver.mtu: 9000", []string{
			"link:*/mtu = 9000: still-right"}},
		{"an interface with a variable in it", "sysctl_param \"net.ipv4.conf.#{dev}.rp_filter\" do\n  value 0\nend",
			[]string{"net.ipv4.conf.*.rp_filter = 0: now-default"}},
		{"a switch of Nix", "boot.kernel.sysctl = {\n\"net.ipv4.tcp_sack\" = lib.mkForce false;\n};\nx.enable = true;",
			[]string{sack}},
		{"variables among words", `run(["sudo", "ethtool", "-K", dev.name, "gro", "off"], text=True)`,
			[]string{"ethtool:$dev_name/feature.rx-gro = off: harmful"}},
		{"the program behind others", `c = Command("docker", "exec", node, "ethtool", "-K", dev, "gro", "off")`,
			[]string{"ethtool:$dev/feature.rx-gro = off: harmful"}},
		{"the MTU of a tunnel", `["ip", "link", "set", tap, "mtu", "1420"]`, []string{"link:$tap/mtu = 1420: still-right"}},
		{"a table without whole names", "p = {\n  'rp_filter' => 0, # x\n}\np.each do |param, value|\n" +
			"  sysctl_param \"net.ipv4.conf.all.#{param}\" do\n    value value\n  end\nend",
			[]string{"net.ipv4.conf.all.rp_filter = 0: now-default"}},
		{"one of Python", "p = {\n    \"tcp_sack\": 0,\n}\nfor k, v in p.items():\n    run(f\"sysctl -w net.ipv4.{k}={v}\")",
			[]string{sack}},
		{"a service of Solaris", "# svccfg -s nettune setprop tcp/Ucwnd_max = integer: 33554432\n" +
			"# svccfg -s nettune setprop tcp/tcp_max_buf = integer: 33554432", []string{
			"ipadm:tcp/_cwnd_max = 33554432: still-right", "ndd:tcp/tcp_max_buf = 33554432: still-right"}},
		{"a file that a script shows", "echo net.ipv4.tcp_sack=0\necho\necho net.core.somaxconn=128\n" +
			"echo net.ipv4.tcp_window_scaling=0", []string{sack, "net.core.somaxconn = 128: harmful",
			"net.ipv4.tcp_window_scaling = 0: harmful"}},
		{"a remark behind netsh", "- netsh int tcp set supplemental (for Windows 7 users it is another command)", nil},
		{"a type behind the name", `Call :%~1 HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters ` +
			`IRPStackSize REG_DWORD 0x48 %~2`, []string{
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters\IRPStackSize = 72: ignored`}},
		{"doubled quotes", `Run(@"New-ItemProperty -Path ""HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters` +
			`\Interfaces\$($_.Guid)"" -Name ""TcpAckFrequency"" -Value 1")`,
			[]string{tcpipParameters + `Interfaces\$($_.Guid)\TcpAckFrequency = 1: still-right`}},
		{"a row with a task", "| x | `ansible.posix.sysctl: name: net.ipv4.tcp_sack value: '0' state: present` |",
			[]string{sack}},
		{"items of several words",
			"for p in \"ip netns exec a\" \"ip netns exec b\"; do\n$p sysctl -w net.ipv4.tcp_sack=0\ndone",
			[]string{sack, sack}},
		{"a queue of CAN", "ip link set can0 up txqueuelen 1000", []string{"link:can0/txqueuelen = 1000: still-right"}},
		{"a driver's file that a script writes", `echo "default_mtu=9000;" >> /kernel/drv/ixgbe.conf`,
			[]string{"driver:ixgbe/default_mtu = 9000: still-right"}},
		{"items of a page", `In HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters add:` +
			"\n* Value Name: DefaultTTL\n* Value Type: DWORD\n* Value data: 64", []string{
			tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"a route in a variable", "ip route change $route initcwnd 25", []string{"route:$route/initcwnd = 25: still-right"}},
		{"a variable of the environment", `SYSCTL_NET_CORE_SOMAXCONN="${SYSCTL_NET_CORE_SOMAXCONN:-128}"`,
			[]string{"net.core.somaxconn = 128: harmful"}},
		{"a list of Nix", "boot.kernel.sysctl.\"net.ipv4.tcp_sack\" = false;\nsecurity.pam.loginLimits = [ # x\n" +
			"networking.nftables.enable = true;", []string{sack}},
		{"the hops of a compartment", "netsh int ipv4 set compartment 0 255 store=persistent", []string{
			"netsh:ip/defaultcurhoplimit = 255: still-right"}},
		{"words that calls make", `{"ethtool", "-G", dev, "rx", strconv.Itoa(4096)},` + "\n" +
			`run("sysctl", "-w", fmt.Sprintf("net.ipv4.conf.%s.rp_filter=0", dev))`, []string{
			"ethtool:$dev/ring.rx = 4096: still-right", "net.ipv4.conf.%s.rp_filter = 0: now-default"}},
		{"a list behind the program", "spawn('ethtool', ['-K', dev, 'gro', 'off']);\n" +
			"exec('sysctl', ['-w', `net.ipv4.tcp_sack=0`])", []string{
			"ethtool:$dev/feature.rx-gro = off: harmful", sack}},
		{"disciplines of programs", `run(["tc", "qdisc", "replace", "dev", dev, "root", "fq"])` + "\n" +
			`run("tc qdisc add dev eth0 root fq")`, []string{
			"qdisc:$dev/root = fq: still-right", "qdisc:eth0/root = fq: still-right"}},
		{"variables of Rust", `Command::new("ethtool").arg("-K").arg(iface).arg("gro").arg("off").status()?;`,
			[]string{"ethtool:$iface/feature.rx-gro = off: harmful"}},
		{"VyOS", "set system sysctl parameter net.ipv4.tcp_sack value '0'\nset interfaces ethernet eth0 mtu 9000\n" +
			"set interfaces ethernet eth0 ring-buffer rx 4096", []string{
			sack, mtu, "ethtool:eth0/ring.rx = 4096: still-right"}},
		{"a number that is not known", `["ip", "link", "set", "dev", "eth0", "mtu", str(self.mtu)]`,
			[]string{"link:eth0/mtu = $self_mtu: unknown"}},
		{"remarks in an entry", "- name: eth0  # x\n  mtu: 9000  # y\n  ipv4:\n    enabled: false\n", []string{mtu}},
		{"a later command of a string", `run("ifconfig eth0 down && ethtool -K eth0 gro off; ifconfig eth0 up")`,
			[]string{gro}},
		{"commands of a variable", `cmd="sudo sysctl net.ipv4.tcp_sack=0; sudo ethtool -K eth0 gro off"`,
			[]string{sack, gro}},
		{"switches of ifconfig in a string", `sudo("sysctl hw.ix.enable_aim=0; " "ifconfig %s -tso -lro; " % (i))`, []string{
			"hw.ix.enable_aim = 0: now-default", "ifconfig:%s/tso = off: harmful", "ifconfig:%s/lro = off: still-right"}},
		{"features that no kernel has", "ethtool -K eth0 xdp on rx-timestamping on hw-tc-offload on", []string{
			"ethtool:eth0/feature.xdp = on: ignored", "ethtool:eth0/feature.rx-timestamping = on: ignored",
			"ethtool:eth0/feature.hw-tc-offload = on: still-right"}},
		{"more descriptors than a NIC has", "ethtool -G eth0 rx 2097152 tx 65535", []string{
			"ethtool:eth0/ring.rx = 2097152: ignored", "ethtool:eth0/ring.tx = 65535: still-right"}},
		{"numbers of Ruby and tabs", "'net.core.somaxconn': 65_535,\n" + `'net.ipv4.tcp_rmem': "4096\t87380\t33554432",`,
			[]string{"net.core.somaxconn = 65535: still-right", "net.ipv4.tcp_rmem = 4096 87380 33554432: still-right"}},
		{"a call with a host before the name", `stack.SysctlSet (hosts.Get(i), ".net.ipv4.tcp_sack", "0");`,
			[]string{sack}},
		{"a tuple with a call", `("net.core.busy_poll", str(self._poll)),`, []string{
			"net.core.busy_poll = $self__poll: unknown"}},
		{"a file and echo as words of a call", `Run("/proc/sys/net/ipv4/tcp_sack", "echo", "0", NULL_STR);`,
			[]string{sack}},
		{"modules of Kata", `kernel_modules = ["e1000e InterruptThrottleRate=0 EEE=1", "i915"]`, []string{
			"module:e1000e/InterruptThrottleRate = 0: still-right", "module:e1000e/EEE = 1: ignored"}},
		{"options that a program writes", `f.write('options ixgbevf InterruptThrottleRate=1,1')`, []string{
			"module:ixgbevf/InterruptThrottleRate = 1,1: ignored"}},
		{"the command line in the log", "[    0.0] Kernel command line: root=/dev/sda e1000e.InterruptThrottleRate=0",
			[]string{"module:e1000e/InterruptThrottleRate = 0: still-right"}},
		{"the end of a string of Perl", `print "[x] Set-NetTCPSetting -AutoTuningLevelLocal Normal\n";`, []string{
			"netsh:tcp/autotuninglevel = normal: now-default"}},
		{"what sysctl shows", "$ sysctl -a | grep sack\nnet.ipv4.tcp_sack = 0\nnet.ipv4.tcp_dsack = 0\n\n" +
			"net.ipv4.tcp_sack = 0", []string{sack}},
		{"lines of a program", "rules = \"\"\"\nok = sum(write(p) for p in all)\nparameter(\n  default_value=1000,\n" +
			"  low='a b',\n)", nil},
		{"a remark behind ifconfig", "<b>$ ifconfig eth0 mtu 9000 up</b> - set mtu to 9000", []string{mtu}},
		{"a table with the default first", "| `net.ipv4.tcp_sack` | 1（默认） | 0 | x |", []string{sack}},
		{"words in a table on one line", "SYSCTL = {'net.core.default_qdisc':'fq', 'net.ipv4.tcp_sack':'0',", []string{
			"net.core.default_qdisc = fq: still-right", sack}},
		{"what a kernel has removed", "> `net.ipv4.tcp_tw_recycle` **was removed in kernel 4.12** and broke clients", nil},
		{"the output of a command", "MAC=$(cat /sys/class/net/eth0/address)\nip link set eth0 mtu 9000", []string{mtu}},
		{"sudo in a string", `os.system("sudo sh -c 'echo 0 > /proc/sys/net/ipv4/tcp_sack'")`, []string{sack}},
		{"addresses of others", "net.ipv6.ip_nonlocal_bind = 1", []string{"net.ipv6.ip_nonlocal_bind = 1: still-right"}},
		{"data without an answer", "net.netfilter.nf_conntrack_tcp_timeout_unacknowledged = 10", []string{
			"net.netfilter.nf_conntrack_tcp_timeout_unacknowledged = 10: harmful"}},
		{"names with slashes", `"net/ipv4/tcp_sack": "0",`, []string{sack}},
		{"a file that a string writes", `cmds:add("echo 'kern.ipc.nmbclusters=\"1000\"' >> /mnt/boot/loader.conf")`,
			[]string{"kern.ipc.nmbclusters = 1000: harmful"}},
		{"the first line of a text", "echo \"net.ipv4.tcp_sack = 0\nnet.core.somaxconn = 128\" >> /etc/sysctl.conf",
			[]string{sack, "net.core.somaxconn = 128: harmful"}},
		{"names of patched kernels", "sysctl -w net.mptcp.mptcp_scheduler=$s", []string{
			"net.mptcp.mptcp_scheduler = $s: ignored"}},
		{"nothing kept back", "net.ipv4.tcp_app_win = 0", []string{"net.ipv4.tcp_app_win = 0: still-right"}},
		{"variables before a command", "K=${L} SITE=\"x\" bash -c \"$(curl x)\"", nil},
		{"a NIC without its number", "dev.em.rx_processing_limit=-1", []string{
			"dev.em.rx_processing_limit = -1: ignored"}},
	} {
		if got := short(judged(t, Target{}, c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
