package advice

import (
	"slices"
	"testing"
)

// TestUnusualForms: forms of programs, batch files and configuration tools that files of the sets
// AM and AN have, or that were typed beside them.
func TestUnusualForms(t *testing.T) {
	const batch = "\ngoto :eof\n:set\nreg add \"HKLM\\SYSTEM\\CurrentControlSet\\%~1\" /v \"%~2\" /t" +
		" REG_DWORD /d %3 /f >nul\nexit /b\n" +
		":tcp\nset \"what=%~1\"\nnetsh int tcp set global %what%\ngoto :eof"
	const links = "[Match]\nOriginalName=eth0\n[Link]\n"
	for _, c := range []struct{ name, text, want string }{
		{"words in braces", `{"netsh", "int", "tcp", "set", "global", "rss=disabled"},`, "netsh:tcp/" +
			"rss = disabled: harmful"},
		{"words over lines", "run(\n[\n\"netsh\",\n\"int\", \"tcp\", \"set\", \"global\",\n\"rss=disabled\",\n],\n)",
			"netsh:tcp/rss = disabled: harmful"},
		{"the first of two words", "run([\"netsh\", \"int\", \"tcp\", \"set\", \"global\",\n" +
			"\"rss=disabled\" if off else \"rss=enabled\"],\n check=True)", "netsh:tcp/rss = disabled: harmful"},
		{"the second of two words", "run([\"netsh\", \"int\", \"tcp\", \"set\", \"global\",\n" +
			"off ? \"rss=disabled\" : \"rss=enabled\"]);", "netsh:tcp/rss = enabled: now-default"},
		{"a function of a batch file", `call :set "Services\Tcpip\Parameters" "DefaultTTL" "64"` + batch,
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"one that a loop calls", `for %%i in (chimney=disabled rss=disabled) do call :tcp %%i` + batch,
			"netsh:tcp/rss = disabled: harmful"},
		{"a key of a loop in a variable", "for /f \"tokens=*\" %%k in ('reg query \"HKLM\\SYSTEM\\Cu" +
			"rrentControlSet\\Services\\" +
			"Tcpip\\Parameters\\Interfaces\"') do (\nset \"key=%%k\"\nreg add \"!key!\" /v TcpAckFre" +
			"quency /t REG_DWORD /d 1 /f\n)",
			tcpipParameters + `Interfaces\*\TcpAckFrequency = 1: still-right`},
		{"keys below a key in a variable", "set \"ROOT=HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tc" +
			"pip\\Parameters\\Interfaces\"\n" +
			"for /f \"delims=\" %%I in ('reg query \"%ROOT%\" ^| findstr {') do call :one \"%%I\"\ng" +
			"oto :eof\n:one\n" +
			"reg add \"%~1\" /v TcpAckFrequency /t REG_DWORD /d 1 /f",
			tcpipParameters + `Interfaces\*\TcpAckFrequency = 1: still-right`},
		{"a loop over NICs in another", "for /f %%a in ('reg query \"HKLM\\SYSTEM\\CurrentControlSet" +
			"\\Control\\Class\\" +
			"{4d36e972-e325-11ce-bfc1-08002be10318}\" /s ^| findstr HKEY') do (\n" +
			"for /f %%i in ('reg query \"%%a\" /v \"TxIntDelay\" ^| findstr HKEY') do (\n" +
			"reg add \"%%i\" /v \"TxIntDelay\" /t REG_SZ /d \"0\" /f\n)\n)",
			"registry:" + nicClass + `\%%i\TxIntDelay = 0: still-right`},
		{"interfaces that a page leaves open",
			"[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\\Interfaces" +
				"\\***]\n\"MTU\"=dword:000005dc",
			tcpipParameters + `Interfaces\***\MTU = 1500: now-default`},
		{"a key with blanks as a raw string", "p = `SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion" +
			"\\Multimedia\\SystemProfile`\n" +
			"k, err := registry.OpenKey(registry.LOCAL_MACHINE, p, registry.SET_VALUE)\n" +
			"k.SetDWordValue(\"NetworkThrottlingIndex\", 10)",
			`registry:HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile\Net` +
				`workThrottlingIndex = 10: now-default`},
		{"a key with its data in a cell", "| ttl | Hops | `HKLM\\SYSTEM\\CurrentControlSet\\Services" +
			"\\Tcpip\\Parameters\\DefaultTTL` = 64 " +
			"| medium | Restored by deleting (event 42) |", tcpipParameters + "DefaultTTL = 64: still-right"},
		{"a program with its directory in quotes", `ExecWait '"$SYSDIR\netsh.exe" int tcp set global rss=disabled'`,
			"netsh:tcp/rss = disabled: harmful"},
		{"words of AutoHotkey", "RunWait, netsh int tcp set global rss=disabled,, Hide", "netsh:tcp/" +
			"rss = disabled: harmful"},
		{"the hive of 64 bits", `RegWrite("HKEY_LOCAL_MACHINE64\SYSTEM\CurrentControlSet\Services\Tc` +
			`pip\Parameters", ` +
			`"DefaultTTL", "REG_DWORD", "0x40")`, tcpipParameters + "DefaultTTL = 64: still-right"},
		{"a command in an element", "<Path>cmd /c netsh int tcp set global rss=disabled</Path>", "ne" +
			"tsh:tcp/rss = disabled: harmful"},
		{"two commands in a string", `"InvokeScript": ["Set-NetTCPSetting -SettingName Internet -InitialRto 2000\n` +
			`Disable-NetAdapterLso -Name *"],`, "netsh:tcp/initialrto = 2000: harmful"},
		{"signatures of SMB", `reg add HKLM\SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters /v ` +
			`RequireSecuritySignature /t REG_DWORD /d 1 /f`, `registry:HKLM\SYSTEM\CurrentControlSet\Services\` +
			`LanmanWorkstation\Parameters\RequireSecuritySignature = 1: now-default`},
		{"IPsec in the NIC", `reg add "HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11` +
			`ce-bfc1-08002be10318}\0001" ` +
			`/v "*IPsecOffloadV2" /d 0`, "registry:" + nicClass + `\0001\*IPsecOffloadV2 = 0: ignored`},
		{"a command of a task", "- command: ethtool -G eth0 rx 4096", "ethtool:eth0/ring.rx = 4096: still-right"},
		{"a line of a file", "  lineinfile:\n    line: net.ipv4.tcp_sack   = 0", "net.ipv4.tcp_sack = 0: harmful"},
		{"words without quotes", "- [ sysctl, -w, net.ipv4.tcp_sack=0 ]", "net.ipv4.tcp_sack = 0: harmful"},
		{"what the NIC has", links + "RxBufferSize=max", "ethtool:eth0/ring.rx = max: still-right"},
		{"an attribute of udev", `ACTION=="add", SUBSYSTEM=="net", KERNEL=="eth*", ATTR{mtu}="9000"`,
			"link:*/mtu = 9000: still-right"},
		{"a program of udev beside it", `SUBSYSTEM=="net", ATTR{tx_queue_len}="100", RUN+="/sbin/eth` +
			`tool -K %k tso off"`,
			"ethtool:%k/feature.tx-tcp-segmentation = off: harmful"},
		{"a line of interfaces(5)", `echo "  mtu 9000" >> /etc/network/interfaces.d/$NIC`, "link:*/m" +
			"tu = 9000: still-right"},
		{"a task of ECS", `"systemControls": [ { "namespace": "net.ipv4.tcp_sack", "value": "0" } ]`,
			"net.ipv4.tcp_sack = 0: harmful"},
		{"a container of LXC", "lxc.sysctl.net.ipv4.tcp_sack = 0", "net.ipv4.tcp_sack = 0: harmful"},
		{"a quote without an end", "kern.ipc.nmbclusters=\"1000000\nnet.isr.maxthreads=\"-1\"",
			`kern.ipc.nmbclusters = "1000000: ignored`},
		{"datagrams cut by the host", "ethtool -K eth0 tx-udp-segmentation off",
			"ethtool:eth0/feature.tx-udp-segmentation = off: harmful"},
		{"names in one block of Puppet", "sysctl::value {\n'net.ipv4.tcp_sack':     value => 0;", "n" +
			"et.ipv4.tcp_sack = 0: harmful"},
		{"a line of crontab", `echo '@reboot root nmcli con mod "br0" ethtool.feature-tso off' >> /etc/crontab`,
			"ethtool:*/feature.tx-tcp-segmentation = off: harmful"},
		{"numbers of NetworkManager", "nmcli connection modify eth0 ethtool.coalesce-rx-usecs 0 etht" +
			"ool.channels-combined 1",
			"ethtool:*/coalesce.rx-usecs = 0: still-right"},
		{"an option of OpenWrt", "uci -q set network.globals.packet_steering='1'", "uci:packet_steer" +
			"ing = 1: still-right"},
		{"pause frames, as drivers have them", "Set-NetAdapterAdvancedProperty -Name x -DisplayName " +
			"\"Flow Control\" " +
			"-DisplayValue \"Rx & Tx Enabled\"", "adapter:x/Flow Control = Rx & Tx Enabled: now-default"},
		{"a key with blanks in a list", `Process.run('reg', ['add', 'HKLM\\SOFTWARE\\Microsoft\\Windows NT\\` +
			`CurrentVersion\\Multimedia\\SystemProfile', '/v', 'NetworkThrottlingIndex', '/t', 'REG_` +
			`DWORD', '/d', '10', '/f']);`,
			`registry:HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile\` +
				`NetworkThrottlingIndex = 10: now-default`},
		{"a name of strings and a variable", `exec.Command("sysctl", "-w", "net.ipv4.conf."+bridge+".forwarding=1")`,
			"net.ipv4.conf.${bridge}.forwarding = 1: still-right"},
		{"a feature that a program fills in", `cmd("ethtool -K eth0 %s off" % feature)`, "ethtool:et" +
			"h0/feature.%s = off: unknown"},
		{"a keyword in the key of the device", `reg add "HKLM\SYSTEM\CurrentControlSet\Enum\PCI\X\De` +
			`vice Parameters" ` +
			`/v "*EEE" /d 0`, `registry:HKLM\SYSTEM\CurrentControlSet\Enum\PCI\X\Device Parameters\*` +
			`EEE = 0: ignored`},
		{"a word that netsh does not have", "netsh int ipv4 set subinterface 10 weighted=1", "netsh:" +
			"ip/weighted = 1: ignored"},
		{"devices of a module", "modprobe ifb numifbs=64", "module:ifb/numifbs = 64: still-right"},
	} {
		if got := short(judged(t, Target{}, c.text)); !slices.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestUnusualFormsSetNothing: a function is read by its calls alone.
func TestUnusualFormsSetNothing(t *testing.T) {
	for _, text := range []string{
		":set\nreg add \"%~1\" /v \"%~2\" /t REG_DWORD /d %3 /f\nexit /b",
		`SUBSYSTEM=="net", ATTR{mtu}=="9000", NAME="x"`,
		"line: 12",
		`sysrc kld_list+="tcp_rack"`,
	} {
		if got := short(judged(t, Target{}, text)); len(got) > 0 {
			t.Errorf("%s: %q", text, got)
		}
	}
}
