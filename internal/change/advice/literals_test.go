package advice

import (
	"slices"
	"strings"
	"testing"
)

// TestLiterals: programs, installers and catalogues, of which the reader knows no language.
func TestLiterals(t *testing.T) {
	const (
		profile = `registry:HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile\`
		key     = `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`
		nic     = tcpipParameters + `Interfaces\*\`
	)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a call over lines with a cast",
			"Add(On(false,\n @\"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Multimedia\\SystemProfile\",\n" +
				` "NetworkThrottlingIndex", unchecked((int)0xFFFFFFFF)));`,
			[]string{profile + "NetworkThrottlingIndex = 4294967295: still-right"}},
		{"tuples over lines", "(r\"" + key + "\",\n \"MaxUserPort\", 65534, \"ports\"),\n" +
			"(r\"" + key + "\",\n \"DefaultTTL\", 64),",
			[]string{tcpipParameters + "MaxUserPort = 65534: ignored", tcpipParameters +
				"DefaultTTL = 64: still-right"}},
		{"the key in a constant", "const string K = @\"" + key + "\";\n" +
			"x.Add(W.Dword(Hive.Machine, K, \"DefaultTTL\", 128));",
			[]string{tcpipParameters + "DefaultTTL = 128: now-default"}},
		{"keys below an opened one", "using (var all = Registry.LocalMachine.OpenSubKey(@\"" + key +
			"\\Interfaces\", true))\n" +
			"foreach (var s in all.GetSubKeyNames())\n{\nusing var one = all.OpenSubKey(s, true);\n" +
			"one?.SetValue(\"TcpAckFrequency\", 1, RegistryValueKind.DWord);\n}",
			[]string{nic + "TcpAckFrequency = 1: still-right"}},
		{"a table behind an opened key", "var all = Registry.LocalMachine.OpenSubKey(@\"" + key + "\\Interfaces\", true);\n" +
			"var d = new Dictionary<string, int> {\n{ \"DefaultTTL\", 64 },\n{ \"TcpAckFrequency\", 1 },\n};\n" +
			"foreach (var e in d) { Registry.SetValue(K, e.Key, e.Value); }",
			[]string{tcpipParameters + "DefaultTTL = 64: still-right", nic + "TcpAckFrequency = 1: still-right"}},
		{"a method of an opened key", "using (RegistryKey k = Registry.LocalMachine.OpenSubKey(\n" +
			"@\"" + key + "\", true))\n{\n" +
			"k.SetValue(\"TcpAckFrequency\", 1, RegistryValueKind.DWord);\n}",
			[]string{tcpipParameters + "TcpAckFrequency = 1: ignored"}},
		{"a reserved argument", `winreg.SetValueEx(k, "TCPNoDelay",      0, winreg.REG_DWORD, 1)`,
			[]string{tcpipParameters + "Interfaces\\*\\TCPNoDelay = 1: ignored"}},
		{"a zero before its type",
			`("HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\DefaultTTL", 64, winreg.REG_DWORD),`,
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"Visual Basic", `sh.RegWrite "HKLM\` + key + `\TcpTimedWaitDelay", "30", "REG_DWORD" 'sooner`,
			[]string{tcpipParameters + "TcpTimedWaitDelay = 30: still-right"}},
		{"an installer", `WriteRegDWORD HKLM "` + key + `" "MaxUserPort" 65534`,
			[]string{tcpipParameters + "MaxUserPort = 65534: ignored"}},
		{"AutoHotkey", `RegWrite, REG_DWORD, HKEY_LOCAL_MACHINE, ` + key + `, DefaultTTL, 64`,
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"AutoHotkey 2", `RegWrite 64, "REG_DWORD", "HKLM\` + key + `", "DefaultTTL"`,
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"fields of an object", "{\n\"hive\": \"HKLM\",\n" +
			"\"path\": \"SYSTEM\\\\CurrentControlSet\\\\Services\\\\Tcpip\\\\Parameters\",\n" +
			"\"valueName\": \"DefaultTTL\",\n\"valueType\": \"DWord\",\n\"newValue\": 64,\n\"defaultValue\": 128\n},",
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"words of a command over lines", "run([\n" +
			"'reg', 'add', 'HKLM\\\\SYSTEM\\\\CurrentControlSet\\\\Services\\\\Tcpip\\\\Parameters',\n" +
			"'/v', 'DefaultTTL', '/t', 'REG_DWORD', '/d', '64', '/f'\n])",
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"a page", "HKEY_LOCAL_MACHINE\\" + key + "\n- Value Name: MaxUserPort\n- Value Type: DWORD\n" +
			"- Value data: 65534\n" +
			"- Default: 5000\n- Value Name: DefaultTTL\n- Value data: 64",
			[]string{tcpipParameters + "MaxUserPort = 65534: ignored", tcpipParameters +
				"DefaultTTL = 64: still-right"}},
		{"a command behind a question",
			`if (Ask "x?") { Set-ItemProperty "HKLM:\` + key + `" -Name "DefaultTTL" -Value 64; x }`,
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"either way", `Set(@"` + key + `", "MaxUserPort", on == true ? 65534 : 65534, Kind.DWord);`,
			[]string{tcpipParameters + "MaxUserPort = 65534: ignored"}},
		{"a command of several lines", "reg add \"HKLM\\" + key + "\" ^\n /v DefaultTTL /t REG_DWORD /d 64 /f",
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"zeros in front", `reg add HKLM\` + key + ` /v DefaultTTL /t REG_DWORD /d 0064 /f`,
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"a file for a container", `echo RUN reg add HKLM\` + key + ` /v DefaultTTL /t REG_DWORD /d 64 /f`,
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"a value whose name is in the title", "registry_value { 'HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\" +
			"Services\\Tcpip6\\Parameters\\DisabledComponents':\n ensure => present,\n type => dword,\n data => '0xFF',\n}",
			[]string{`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip6\Parameters\DisabledComponents = 255: harmful`}},
		{"names with arrows below a key", "windows_registry 'HKLM\\SYSTEM\\CurrentControlSet\\Services\\Lanmanserver\\" +
			"Parameters' do\n values 'MaxMpxCt' => 800, 'MaxWorkItems' => 00002000\n type :dword\nend",
			[]string{`registry:HKLM\SYSTEM\CurrentControlSet\Services\Lanmanserver\Parameters\MaxMpxCt = 800: still-right`,
				`registry:HKLM\SYSTEM\CurrentControlSet\Services\Lanmanserver\Parameters\MaxWorkItems = 2000: still-right`}},
		{"a backup that sets", "_backup.SetRegistryValue(\n@\"HKLM\\" + key + "\",\n\"DefaultTTL\",\n64,\n" +
			"RegistryValueKind.DWord);\nresult.Success = true;",
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"a name with blanks", `Root: "HKLM"; Subkey: "SYSTEM\CurrentControlSet\Services\Tcpip\QoS"; ValueType: string; ` +
			`ValueName: "Do not use NLA"; ValueData: "1"; Flags: deletevalue`,
			[]string{`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\QoS\Do not use NLA = 1: still-right`}},
		{"the address of a number", "// winreg\nconst DWORD one = 1;\n" +
			"::RegSetValueExW(sub, L\"TcpAckFrequency\", 0, REG_DWORD,\n" +
			"reinterpret_cast<const BYTE*>(&one), sizeof(one));", []string{nic + "TcpAckFrequency = 1: still-right"}},
		{"the path of an interface", "tcpPath := `" + key + "`\nnicPath := InterfacesKey + `\\` + nic.GUID\n" +
			"nicKey, err := registry.OpenKey(registry.LOCAL_MACHINE, nicPath, registry.SET_VALUE)\n" +
			"if err := nicKey.SetDWordValue(\"TcpAckFrequency\", 1); err != nil {",
			[]string{nic + "TcpAckFrequency = 1: still-right"}},
		{"a parameter with the name of a field", "$p = \"HKLM:\\" + key + "\"\n$all = @(\n" +
			"@{ Path = $p; Name = \"MaxUserPort\"; Value = 65534 }\n)\n" +
			"Set-ItemProperty -Path \"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\ServiceProvider\" " +
			"-Name \"DnsPriority\" -Value 6",
			[]string{tcpipParameters + "MaxUserPort = 65534: ignored",
				`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\ServiceProvider\DnsPriority = 6: still-right`}},
		{"the name of an interface in the call", "allPath = `" + key + "\\Interfaces`\n" +
			"oneKey, err := registry.OpenKey(registry.LOCAL_MACHINE, allPath+`\\`+name, registry.SET_VALUE)\n" +
			"oneKey.SetDWordValue(\"TcpAckFrequency\", 1)", []string{nic + "TcpAckFrequency = 1: still-right"}},
		{"a call that is asked whether it worked", "const char *k = \"" + strings.ReplaceAll(key, `\`, `\\`) + "\";\n" +
			"if (writeDword(k, L\"DefaultTTL\", 64) && ok) {", []string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"the key of a loop", "$t = @(\n@{Name=\"TcpAckFrequency\"; Value=1}\n)\nforeach ($x in $t) {\n" +
			"New-ItemProperty `\n-Path \"HKLM:\\" + key + "\" `\n-Name $x.Name -Value $x.Value\n}",
			[]string{tcpipParameters + "TcpAckFrequency = 1: ignored"}},
		{"a sentence about a command", `Write-Host "Enable-NetAdapterRss is not supported here"`, nil},
		{"a macro around a string", "{kTcpipParameters, QStringLiteral(\"DefaultTTL\"), 64, 128},",
			[]string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"a constant that is defined elsewhere", `Registry.Set(AfdParameters, "DefaultReceiveWindow", 65536);`,
			[]string{`registry:HKLM\SYSTEM\CurrentControlSet\Services\AFD\Parameters\DefaultReceiveWindow = 65536: ignored`}},
		{"a number with its base", "int n = Convert.ToInt32(\"40\", 16);\nRegistry.SetValue(@\"HKEY_LOCAL_MACHINE\\" + key +
			"\", \"DefaultTTL\", n, RegistryValueKind.DWord);", []string{tcpipParameters + "DefaultTTL = 64: still-right"}},
		{"not decided", `SetDword(@"` + key + `", "DefaultTTL", ttl);`, []string{": unknown"}},

		// Nothing is set.
		{"read", `var x = key.GetValue(@"HKLM\` + key + `", "DefaultTTL", 128);`, nil},
		{"compared", `if (Registry.Value("DefaultTTL", 64) == 1) {`, nil},
		{"deleted", `reg.delete(r"HKLM\` + key + `", "TcpAckFrequency", 1)`, nil},
		{"defaults", "DEFAULTS = {\n\"HKLM\\\\SYSTEM\": \"registry\",\n\"TcpTimedWaitDelay\": 240,\n}", nil},
		{"restored", "restore = [(r\"" + key + "\",\n\"TcpTimedWaitDelay\", 240)]", nil},
		{"described", `the registry value "DefaultTTL" (128 if it is missing) counts hops`, nil},
		{"a comment", `# ("HKLM\` + key + `", "DefaultTTL", 64)`, nil},
		{"no value", `names = ["TcpAckFrequency", "TCPNoDelay"]  # winreg`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, j := range judged(t, Target{}, c.text) {
				if j.Knob == "" {
					got = append(got, ": unknown")
				} else {
					got = append(got, j.Knob+" = "+j.Value+": "+string(j.Verdict))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s\ngot  %q\nwant %q", c.text, got, c.want)
			}
		})
	}
}

// TestLiteralsOnce: nothing that another form reads is read again, and lines are those of the text.
func TestLiteralsOnce(t *testing.T) {
	text := "import winreg\n\nT = [\n" +
		"    (r\"SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\",\n" +
		"     \"MaxUserPort\", 65534),\n]\n" +
		`reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters /v "DefaultTTL" /t REG_DWORD /d 64 /f` + "\n" +
		`Set-ItemProperty -Path "HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" ` +
		`-Name "SackOpts" -Value 1` + "\n"
	var got []string
	for _, j := range judged(t, Target{}, text) {
		got = append(got, strings.TrimPrefix(j.Knob, tcpipParameters)+" "+string(rune('0'+j.Line)))
	}
	if want := []string{"MaxUserPort 5", "DefaultTTL 7", "SackOpts 8"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
