package advice

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNestedForms reads settings whose parts stand on several lines, or in cells of prose.
func TestNestedForms(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a hash of Chef below the tree", "default['sysctl']['net']['ipv4'] = {\n  :tcp_sack => 1,\n" +
			"  'neigh' => {\n    'default' => {\n      'gc_thresh3' => 1024\n    }\n  },\n  'tcp_low_latency' => 1\n}",
			[]string{"net.ipv4.tcp_sack = 1", "net.ipv4.neigh.default.gc_thresh3 = 1024", "net.ipv4.tcp_low_latency = 1"}},
		{"one value for items of a task", "- name: x\n  sysctl:\n    name: \"{{ item }}\"\n    value: 0\n" +
			"  with_items:\n    - net.ipv4.tcp_sack\n    - net.ipv4.tcp_dsack\n- name: y",
			[]string{"net.ipv4.tcp_sack = 0", "net.ipv4.tcp_dsack = 0"}},
		{"annotations", "annotations:\n  tuning.sysctl.example.io/net.core.somaxconn: \"1024\"",
			[]string{"net.core.somaxconn = 1024"}},
		{"a resource of DSC", "NetAdapterAdvancedProperty X\n{\n NetworkAdapterName = 'Ethernet'\n" +
			" RegistryKeyword = \"*JumboPacket\"\n RegistryValue = 9014\n}\nSet-NetIPInterface -Name x",
			[]string{"adapter:*/*JumboPacket = 9014"}},
		{"a number and a sentence in a cell", "| Setting | Value |\n|---|---|\n" +
			"| `kern.ipc.maxsockbuf` | `16777216` is appropriate for 10 Gbps. |",
			[]string{"kern.ipc.maxsockbuf = 16777216"}},
		{"a switch of loader.conf with sysrc", "sysrc -f /boot/loader.conf cc_htcp_load=YES",
			[]string{"kldload:cc_htcp = YES"}},
		{"a module that is not loaded", "if_cxgbe_load=\"NO\"\ncc_htcp_load=\"YES\"", []string{"kldload:cc_htcp = YES"}},
		{"commands as keys of a table", "sfc = {\"ndd -set /dev/arp arp_cleanup_interval\": \"60000\",\n" +
			"\"ndd -set /dev/ip6 ip6_forwarding\": \"0\"}", []string{"ndd:arp/arp_cleanup_interval = 60000",
			"ndd:ip/ip6_forwarding = 0"}},
		{"a bare number in a sentence of a cell", "| Tunable | Notes |\n|---|---|\n" +
			"| `kern.ipc.maxsockbuf` | 614400000 is the Calomel recommendation for 100 Gbps cards. |",
			[]string{"kern.ipc.maxsockbuf = 614400000"}},
		{"routing of Solaris", "routeadm -u -e ipv4-forwarding", []string{"ipadm:ipv4/forwarding = on"}},
	} {
		a, err := Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range a.Settings {
			got = append(got, strings.TrimPrefix(s.Knob, "sysctl:")+" = "+s.Value)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestKeyedTables: tables of PowerShell that a loop over their keys sets, below a key that only the
// loop names. A guess of the key made wrong settings of right ones.
func TestKeyedTables(t *testing.T) {
	const afd = `registry:HKLM\SYSTEM\CurrentControlSet\Services\AFD\Parameters\`
	table := "$t = @{\n\"DefaultReceiveWindow\" = 65536\n'MaxFastTransmit' = 0x40 # words\n}\n"
	path := "$p = \"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\AFD\\Parameters\"\n"
	want := []string{afd + "DefaultReceiveWindow = 65536", afd + "MaxFastTransmit = 64"}
	for name, text := range map[string]string{
		"keys": table + path + "foreach ($k in $t.Keys) {\nSet-ItemProperty -Path $p -Name $k -Value $t[$k] -Type DWord\n}",
		"enumerator": table + path + "foreach ($e in $t.GetEnumerator()) {\n" +
			"Set-ItemProperty -Path $p -Name $e.Key -Value $e.Value\n}",
		"pipe":      table + path + "$t.Keys | ForEach-Object {\nSet-ItemProperty -Path $p -Name $_ -Value $t[$_]\n}",
		"key below": path + table + "foreach ($k in $t.Keys) { New-ItemProperty -Path $p -Name $k -Value $t[$k] -Force }",
	} {
		a, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range a.Settings {
			got = append(got, strings.TrimPrefix(s.Knob, "sysctl:")+" = "+s.Value)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	text := "Get-ChildItem \"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\\Interfaces\" | " +
		"ForEach-Object {\n" +
		"Set-ItemProperty -Path $_.PSPath -Name \"TcpAckFrequency\" -Value 1\n}"
	const below = tcpipParameters + `Interfaces\*\TcpAckFrequency = 1: still-right`
	if got := short(judged(t, Target{}, text)); !slices.Equal(got, []string{below}) {
		t.Errorf("keys below a key: %q", got)
	}
	text = `$on = 'Get-ChildItem "HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces" | ForEach-Object ` +
		`{ Set-ItemProperty -Path $_.PSPath -Name "TcpAckFrequency" -Value 1 -Type DWord -Force }'`
	if got := short(judged(t, Target{}, text)); !slices.Equal(got, []string{below}) {
		t.Errorf("a pipeline in a string: %q", got)
	}
}

// TestOptionsOfModules judges options and values that the fresh sets had and no fact knew.
func TestOptionsOfModules(t *testing.T) {
	for text, want := range map[string]string{
		"options ib_ipoib recv_queue_size=128":                "module:ib_ipoib/recv_queue_size = 128: harmful",
		"options ib_ipoib send_queue_size=4096":               "module:ib_ipoib/send_queue_size = 4096: still-right",
		"ndd -set /dev/tcp tcp_conn_req_max_q0 {somaxconn*4}": "ndd:tcp/tcp_conn_req_max_q0 = {somaxconn*4}: unknown",
		// Of the second fresh set.
		"options ixgbevf InterruptThrottleRate=1,1":  "module:ixgbevf/InterruptThrottleRate = 1,1: ignored",
		"net.inet.ip.intr_queue_maxlen=100000":       "net.inet.ip.intr_queue_maxlen = 100000: ignored",
		"server:\n    delay-close: 10000":            "unbound:delay-close = 10000: still-right",
		"Set-NetAdapterRss -Name x -TcpIPv4 Enabled": "adapter:*/rss.tcpipv4 = enabled: ignored",
		`reg add HKLM\SYSTEM\CurrentControlSet\Services\NetBT\Parameters /v NetbiosOptions /t REG_DWORD /d 2`: "registry:" +
			`HKLM\SYSTEM\CurrentControlSet\Services\NetBT\Parameters\NetbiosOptions = 2: ignored`,
		`reg add "HKCU\Control Panel\Mouse" /v SackOpts /t REG_DWORD /d 1`: "registry:" +
			`HKCU\Control Panel\Mouse\SackOpts = 1: ignored`,
		"options mlx4_en udp_rss=0":                           "module:mlx4_en/udp_rss = 0: harmful",
		"options virtio_net napi_tx=0":                        "module:virtio_net/napi_tx = 0: harmful",
		"options iwlwifi power_save=0":                        "module:iwlwifi/power_save = 0: now-default",
		"options r8125 aspm=0":                                "module:r8125/aspm = 0: still-right",
		"cc_htpc_load=\"YES\"":                                "kldload:cc_htpc = YES: ignored",
		"t5fw_cfg_load=\"YES\"":                               "kldload:t5fw_cfg = YES: still-right",
		"server:\n    num-threads: 4\n    max-udp-size: 4096": "unbound:max-udp-size = 4096: now-default",
	} {
		if got := short(judged(t, Target{}, text)); !slices.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestChangesAndWords: an arrow shows the new value, and titles and GRUB's lines are not reported.
func TestChangesAndWords(t *testing.T) {
	const profile = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile`
	want := "registry:" + profile + `\NetworkThrottlingIndex = 4294967295: still-right`
	text := "Registry: " + profile + "\n\nNetworkThrottlingIndex: 10 → 0xFFFFFFFF (disabled)"
	if got := short(judged(t, Target{}, text)); len(got) != 1 || !strings.Contains(got[0], "= 4294967295") {
		t.Errorf("an arrow: %q, want %q", got, want)
	}
	for _, text := range []string{
		`module_path="/boot/kernel;/boot/modules"`,
		`GRUB_TIMEOUT=5`,
	} {
		a, err := Parse([]byte("net.core.somaxconn = 4096\n" + text + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Unread) != 0 {
			t.Errorf("%q is reported", text)
		}
	}
}
