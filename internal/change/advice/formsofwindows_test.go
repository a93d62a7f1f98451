package advice

import (
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

const tcpipParameters = `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\`

// TestWindowsForms: how scripts, programs and files of Windows write down what they set.
func TestWindowsForms(t *testing.T) {
	const profile = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile`
	for _, c := range []struct{ name, text, want string }{
		{"a loop over the output of reg query", `for /f %%i in ('reg query "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\` +
			`Parameters\Interfaces" ^| findstr "HKEY"') do (` + "\nif not errorlevel 1 (\necho x\n)\n" +
			"reg add %%i /v TcpAckFrequency /t REG_DWORD /d 1 /f\n)",
			tcpipParameters + `Interfaces\*\TcpAckFrequency = 1: still-right`},
		{"a script in quotes of a shell", `powershell -Command "$i = Get-NetAdapter; foreach ($n in $i) {$p = ` +
			`'HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\' + $n.InterfaceGuid; ` +
			`Set-ItemProperty -Path $p -Name 'TcpAckFrequency' -Value 1 }"`,
			tcpipParameters + `Interfaces\*\TcpAckFrequency = 1: still-right`},
		{"a script that a program builds", `sb.AppendLine("$t = 'HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\` +
			`Parameters'");` + "\n" + `sb.AppendLine("Set-Dword $t 'DisableTaskOffload' 0");`,
			tcpipParameters + `DisableTaskOffload = 0: now-default`},
		{"words of netsh in a list", "foreach ($s in @('rss=enabled', 'initialRto=3000')) {\n" +
			"Invoke-Native -File 'netsh.exe' -Arguments @('int', 'tcp', 'set', 'global', $s) }",
			"netsh:tcp/initialrto = 3000: harmful"},
		{"options of a loop with a tilde", `FOR %%I IN ("rss=disabled" "chimney=disabled") DO NETSH int tcp set global %%~I`,
			"netsh:tcp/rss = disabled: harmful"},
		{"a property of a NIC in a call", "netsh int tcp show global\nInvoke-Prop $n \"Flow Control\" \"Disabled\"",
			"adapter:*/Flow Control = Disabled: still-right"},
		{"IPv4 before IPv6", `reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip6\Parameters /v DisabledComponents /t ` +
			`REG_DWORD /d 0x20 /f`, `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip6\Parameters\` +
			`DisabledComponents = 32: still-right`},
		{"beginnings of names", "netsh int tcp set glob pac=init", "netsh:tcp/pacingprofile = initialwindow: still-right"},
		{"the beginning of an object", "netsh int tcp set heur dis", "netsh:tcp/heuristics = disabled: still-right"},
		{"a list of properties", "Windows: netsh\nnetsh int tcp set global rss=enabled\n- **Receive Buffers**: 4096",
			"adapter:*/Receive Buffers = 4096: still-right"},
		{"answers kept for a second", "reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\Dnscache\\Parameters " +
			"/v MaxCacheTtl /t REG_DWORD /d 1 /f",
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Dnscache\Parameters\MaxCacheTtl = 1: harmful`},
		{"a dword in bytes", "Windows Registry Editor Version 5.00\n" +
			"[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\n\"DefaultTTL\"=hex(4):40,00,00,00",
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"parameters in a table", "$p = @{\n SettingName = 'Internet'\n EcnCapability = 'Enabled'\n}\n" +
			"Set-NetTCPSetting @p",
			"netsh:tcp/ecncapability = enabled: still-right"},
		{"a key that a variable holds in turn", "$path = \"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\AFD\\Parameters\"\n" +
			"$path = \"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\Parameters\"\n" +
			"Set-ItemProperty -Path $path -Name IRPStackSize -Value 10",
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters\IRPStackSize = 10: harmful`},
		{"a key with a blank", "$m = \"HKLM:\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\" +
			"Multimedia\\SystemProfile\"\n" +
			"Set-ItemProperty -Path $m -Name NetworkThrottlingIndex -Value 10",
			"registry:" + profile + `\NetworkThrottlingIndex = 10: now-default`},
		{"entries of a table", `@{ Path = "HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters"; ` +
			`Name = "MaxUserPort"; Value = 65534 },`,
			tcpipParameters + "MaxUserPort = 65534: ignored"},
		{"an entry over lines", "{\n\"Path\": \"HKLM:\\\\SYSTEM\\\\CurrentControlSet\\\\Services\\\\" +
			"Tcpip\\\\Parameters\",\n" +
			"\"Name\": \"DefaultTTL\",\n\"Value\": \"64\"\n}", tcpipParameters + "DefaultTTL = 64: still-right"},
		{"names without a key", "$s = @{\n\"MaxUserPort\" = 65534\n}\nSet-ItemProperty -Path $x -Name $k -Value $v",
			tcpipParameters + "MaxUserPort = 65534: ignored"},
		{"a function with a key of its own", "function Set-T {\nparam([string]$N, [int]$V = 1)\nSet-ItemProperty -Path " +
			"\"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\" -Name $N -Value $V -Type DWord\n}\n" +
			"Set-T \"DisableTaskOffload\" 1", tcpipParameters + "DisableTaskOffload = 1: harmful"},
		{"a function whose parameters are named", "function Set-P($Keyword, $Data) {\n" +
			"Get-NetAdapterAdvancedProperty -RegistryKeyword \"*$Keyword\" |\n" +
			"ForEach-Object { Set-NetAdapterAdvancedProperty -RegistryKeyword $_.RegistryKeyword -RegistryValue $Data }\n}\n" +
			"Set-P -Data 0 -Keyword LsoV2IPv4", "adapter:*/*LsoV2IPv4 = 0: harmful"},
		{"rows for a loop", "$props = @(\n@{ Display = \"Packet Coalescing\"; Value = \"Disabled\" }\n)\n" +
			"foreach ($p in $props) {\nSet-NetAdapterAdvancedProperty -Name x -DisplayName $p.Display -DisplayValue $p.Value\n}",
			"adapter:x/Packet Coalescing = Disabled: still-right"},
		{"words for a loop", "foreach ($p in @('*EEE', '*RSS')) {\n" +
			"Set-NetAdapterAdvancedProperty -Name x -RegistryKeyword $p -RegistryValue 0\n}",
			"adapter:x/*RSS = 0: harmful"},
		{"words for a batch file", `for %%i in (MaxUserPort DefaultTTL) do reg add ` +
			`"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" /v %%i /t REG_DWORD /d 64 /f`,
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"keys in a variable of a loop", `Set-RegValue $iface.PSPath "TcpNoDelay" 1`,
			`registry:$iface.PSPath\TcpNoDelay = 1: ignored`},
		{"a constant as the key", `SESSION.set_dword(_TCPIP, "MaxUserPort", 65534)`,
			tcpipParameters + "MaxUserPort = 65534: ignored"},
		{"an opened key", `nic_key.set_value("*InterruptModeration", &"0");`,
			"registry:" + nicClass + `\*InterruptModeration = 0: still-right`},
		{"hexadecimal without a prefix",
			`run_reg_add(r"` + profile + `", "NetworkThrottlingIndex", "REG_DWORD", "ffffffff")?;`,
			"registry:" + profile + `\NetworkThrottlingIndex = 4294967295: still-right`},
		{"a hive apart",
			`(RegistryHive.LocalMachine, @"SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile", ` +
				`"NetworkThrottlingIndex", "-1"),`, "registry:" + profile + `\NetworkThrottlingIndex = 4294967295: still-right`},
		{"a call over lines", "set_dword(\nr\"" + profile + "\",\n\"NetworkThrottlingIndex\",\nu32::MAX,\n)?;",
			"registry:" + profile + `\NetworkThrottlingIndex = 4294967295: still-right`},
		{"an INF file", `HKLM,"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters","DefaultTTL",0x00010001,40,00,00,00`,
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"a policy",
			`Set-GPRegistryValue -Name x -Key "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" -ValueName ` +
				`DefaultTTL -Type DWord -Value 64`, tcpipParameters + "DefaultTTL = 64: still-right"},
		{"arguments of reg", `Start-Process reg -ArgumentList 'add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters ` +
			`/v DefaultTTL /t REG_DWORD /d 64 /f'`, tcpipParameters + "DefaultTTL = 64: still-right"},
		{"arguments of netsh", `RunNetsh("int ip set global taskoffload=disabled");`,
			"netsh:ip/taskoffload = disabled: harmful"},
		{"quotes within quotes",
			`powershell -Command "Get-NetAdapterAdvancedProperty -Name \"%n%\" -DisplayName 'Interrupt ` +
				`Moderation' | Set-NetAdapterAdvancedProperty -RegistryValue 1"`,
			"adapter:%n%/Interrupt Moderation = 1: now-default"},
		{"IPv6 privacy", "netsh int ipv6 set privacy state=disabled", "netsh:ipv6/privacy = disabled: still-right"},
		{"Teredo of IPv6", "netsh interface ipv6 set teredo disabled", "netsh:teredo/state = disabled: now-default"},
		{"large sends of one NIC", "Set-NetAdapterLso -Name x -IPv4Enabled $false",
			"adapter:*/lso.ipv4enabled = disabled: harmful"},
		{"power saving of Wi-Fi", "powercfg /setacvalueindex scheme_current 19cbb8fa-5279-450e-9fac-8a3d5fedd0c1 " +
			"12bbebe6-58d6-4636-95bb-3217ef867c1a 0", "powercfg:wifi = 0: still-right"},
		{"no such provider", "netsh int tcp set supplemental internet congestionprovider=bbr",
			"netsh:tcp/congestionprovider = bbr: ignored"},
		{"the key of all interfaces",
			`reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces /v DefaultTTL ` +
				`/t REG_DWORD /d 64 /f`, tcpipParameters + `Interfaces\DefaultTTL = 64: ignored`},
		{"the key of one interface",
			`reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{G} /v DefaultTTL ` +
				`/t REG_DWORD /d 64 /f`, tcpipParameters + `Interfaces\{G}\DefaultTTL = 64: ignored`},
		{"a list in a page", "- `TcpDelAckTicks=0`: fewer delayed acknowledgements",
			tcpipParameters + "Interfaces\\*\\TcpDelAckTicks = 0: ignored"},
		{"a helper with three arguments",
			`RegistryHelper.SetValue(RegistryHive.LocalMachine, TcpipPath, "MaxUserPort", 65534);`,
			tcpipParameters + "MaxUserPort = 65534: ignored"},
		{"a function with a list", `$null = Set-Safely -RegistryKeywords @("*FlowControl") -RegistryValue "0"`,
			"adapter:*/*FlowControl = 0: still-right"},
		{"an entry without a key", "@{\nName = \"TcpDelAckTicks\"\nValue = 0\n}\n" +
			"Set-ItemProperty -Path $p -Name $s.Name -Value 1",
			tcpipParameters + "Interfaces\\*\\TcpDelAckTicks = 0: ignored"},
		{"a call with a keyword", `call :NICSetting "DMACoalescing" "0"`, tcpipParameters + "DMACoalescing = 0: still-right"},
		{"a value of NDIS elsewhere",
			`reg add HKLM\SYSTEM\CurrentControlSet\Services\AFD\Parameters /v RssBaseCpu /t REG_DWORD /d 1`,
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\AFD\Parameters\RssBaseCpu = 1: ignored`},
		{"SMB of one connection", "Set-SmbServerConfiguration -EnableMultiChannel $false -Force",
			"smb:server/enablemultichannel = disabled: harmful"},
		{"a number behind -DWord",
			`Set-RegistryKeyValue -Path 'hklm:\SYSTEM\CurrentControlSet\services\Tcpip\Parameters' ` +
				`-Name "TcpTimedWaitDelay" -DWord 30`,
			`registry:HKLM\SYSTEM\CurrentControlSet\services\Tcpip\Parameters\TcpTimedWaitDelay = 30: still-right`},
		{"properties of a NIC in a table", "$p = @{\n \"Flow Control\" = \"Disabled\"\n" +
			" \"TCP Checksum Offload (IPv4)\" = \"Disabled\" # latency\n}\nforeach ($x in $p.GetEnumerator()) {\n" +
			"Set-NetAdapterAdvancedProperty -Name $n -DisplayName $x.Key -DisplayValue $x.Value\n}",
			"adapter:$n/TCP Checksum Offload (IPv4) = Disabled: harmful"},
		{"the one or the other number", "$params = @{\n\"TcpWindowSize\" = if ($on) { 65535 } else { 16384 }\n}\n" +
			"Set-ItemProperty -Path $x -Name $k -Value $v",
			tcpipParameters + "TcpWindowSize = if ($on) { 65535 } else { 16384 }: ignored"},
		{"reg within quotes of a shell",
			`ssh win "reg add \"HKLM\SYSTEM\CurrentControlSet\Services\Netbt\Parameters\Interfaces\Tcpip_{GUID}\" ` +
				`/v NetbiosOptions /t REG_DWORD /d 2 /f & echo DONE"`,
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Netbt\Parameters\Interfaces\Tcpip_{GUID}\NetbiosOptions = 2: ` +
				`still-right`},
		{"a key and a value in backquotes", "- Registry : ```[HKEY_LOCAL_MACHINE\\System\\CurrentControlSet\\Services\\" +
			"LanmanWorkstation\\Parameters]\n\"FileInfoCacheEntriesMax\"=dword:8000\n\"DisableLargeMtu\"=dword:0```",
			`registry:HKLM\System\CurrentControlSet\Services\LanmanWorkstation\Parameters\DisableLargeMtu = 0: now-default`},
		{"a security template", `MACHINE\System\CurrentControlSet\Services\Tcpip\Parameters\KeepAliveTime=4,300000`,
			`registry:HKLM\System\CurrentControlSet\Services\Tcpip\Parameters\KeepAliveTime = 300000: still-right`},
		{"RDMA by a cmdlet", `Set-NetAdapterRdma -Name "*" -Enabled $True`, "adapter:*/rdma.enabled = enabled: now-default"},
		{"a backslash at the end of a key", "[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\" +
			"Parameters\\Interfaces\\]\n\"TcpAckFrequency\"=dword:00000001",
			tcpipParameters + `Interfaces\TcpAckFrequency = 1: ignored`},
		{"a line of a .reg file behind /v",
			`reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters /v "TcpTimedWaitDelay"=dword:0000001e /f`,
			tcpipParameters + "TcpTimedWaitDelay=dword:0000001e: ignored"},
		{"a property that a pipeline has chosen", `Get-NetAdapterAdvancedProperty -DisplayName "*Large Send Offload*" | ` +
			`ForEach-Object { Set-NetAdapterAdvancedProperty -Name $_.Name -DisplayName $_.DisplayName -RegistryValue 0 }`,
			"adapter:$_.Name/Large Send Offload = 0: harmful"},
		{"a table of a page", "HKLM\n\n| Key | Value | Effect |\n|---|---|---|\n| `TcpDelAckTicks` | `0` | none |",
			tcpipParameters + "Interfaces\\*\\TcpDelAckTicks = 0: ignored"},
		{"a table with a type", "HKLM\n\n| Valeur | Type | Donnees |\n|---|:-:|---|\n" +
			"| `NetworkThrottlingIndex` | REG_DWORD | `0xffffffff` |",
			"registry:" + profile + `\NetworkThrottlingIndex = 4294967295: still-right`},
		{"a table with defaults", "HKLM\n\n| Setting | Default | Optimized |\n|---|---|---|\n" +
			"| `TcpAckFrequency` (ACKs) | 2 | **1** (at once) |",
			tcpipParameters + `Interfaces\*\TcpAckFrequency = 1: still-right`},
		{"a NIC in a page", "Open regedit\n| Setting | Value |\n|---|---|\n" +
			"| Large Send Offload v2 (IPv4/IPv6) | Disabled |",
			"adapter:*/Large Send Offload v2 (IPv4/IPv6) = Disabled: harmful"},
		{"a sentence that sets it", "TCPNoDelay and set it also to 1 to disable nagling",
			tcpipParameters + "Interfaces\\*\\TCPNoDelay = 1: ignored"},
		{"a hexadecimal value in a sentence", "create a DWORD and name it “NetworkThrottlingIndex” then set its " +
			"Hexadecimal value to ffffffff", "registry:" + profile + `\NetworkThrottlingIndex = 4294967295: still-right`},
		{"the value in the next sentence", "1. create a new REG_DWORD value named TcpTimedWaitDelay.\n" +
			"2. Set the value to decimal 30, which is hex 1e.", tcpipParameters + "TcpTimedWaitDelay = 30: still-right"},
		{"a type behind the value", "TCPNoDelay=1 (DWORD value, 1 to disable, not present by default)",
			tcpipParameters + "Interfaces\\*\\TCPNoDelay = 1: ignored"},
		{"a value of TCP below another service",
			`reg add HKLM\SYSTEM\CurrentControlSet\Services\AFD\Parameters /v Tcp1323Opts /t REG_DWORD /d 1 /f`,
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\AFD\Parameters\Tcp1323Opts = 1: ignored`},
		{"a key of Windows 98",
			"[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\VxD\\MSTCP]\n\"DefaultTTL\"=\"64\"",
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\VxD\MSTCP\DefaultTTL = 64: ignored`},
		{"constants of a program in a command", "const key = 'HKLM\\\\SYSTEM\\\\CurrentControlSet\\\\Services\\\\Tcpip\\\\" +
			"Parameters'\nconst name = 'DefaultTTL'\nconst data = '64'\n" +
			"const command = `reg.exe ADD \"${key}\" /v ${name} /t REG_DWORD /d ${data} /f`",
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"no such profile", "netsh int tcp set global pacingprofile=lowlatency",
			"netsh:tcp/pacingprofile = lowlatency: ignored"},
		{"a keyword of a NIC without a key", `SetString(HKEY_LOCAL_MACHINE, key, "EnablePME", "0");`,
			"registry:" + nicClass + `\EnablePME = 0: still-right`},
		{"a value of the web server without a key", `SetString(HKEY_LOCAL_MACHINE, key, "MaxRequestBytes", "65536");`,
			`registry:*\HTTP\Parameters\MaxRequestBytes = 65536: still-right`},
		{"the meaning of a bare name", "netsh int ip show\nDisabledComponents 255",
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip6\Parameters\DisabledComponents = 255: harmful`},
		{"the output of netsh in a variable", `$null = netsh int tcp set global rss=enabled`,
			"netsh:tcp/rss = enabled: now-default"},
		{"the other branch of a batch file", `if %X%==1 (netsh int tcp set global rss=enabled) else (netsh int tcp set ` +
			`global rss=disabled)`, "netsh:tcp/rss = disabled: harmful"},
		{"brackets of a batch file", "(netsh int tcp set global rss=enabled && echo ok)",
			"netsh:tcp/rss = enabled: now-default"},
		{"a loop over what netsh shows", `for /f %%i in ('netsh int show int') do netsh int ipv4 set subinterface "%%i" ` +
			`mtu=1500`, "netsh:ip/mtu = 1500: now-default"},
		{"ports without names", "netsh int ipv4 set dynamicportrange tcp 1025 64511",
			"netsh:ip/dynamicport = 1025 64511: still-right"},
		{"a step of a recipe", "- win_command: netsh int tcp set global rsc=disabled", "netsh:tcp/rsc = disabled: harmful"},
		{"cmd as an argument", `Process.Start("cmd.exe", "/c netsh int tcp set global rss=enabled");`,
			"netsh:tcp/rss = enabled: now-default"},
		{"words behind -ArgumentList",
			`Start-Process "netsh.exe" -ArgumentList "interface","tcp","set","global","rss=enabled"`,
			"netsh:tcp/rss = enabled: now-default"},
		{"a list of words for netsh", `& netsh @("int","tcp","set","global","rss=enabled")`,
			"netsh:tcp/rss = enabled: now-default"},
		{"a hive in small letters", "[hkey_local_machine\\system\\currentcontrolset\\services\\tcpip\\parameters] ; note\n" +
			"\"DefaultTTL\"=dword:00000040",
			`registry:HKLM\system\currentcontrolset\services\tcpip\parameters\DefaultTTL = 64: ` +
				`still-right`},
		{"parameters cut short",
			`New-ItemProperty HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters -n DefaultTTL -t DWord -v 64`,
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"a colon behind a parameter", "Set-NetTCPSetting -AutoTuningLevelLocal:Disabled",
			"netsh:tcp/autotuninglevel = disabled: harmful"},
		{"the key of a pipeline", `Get-ChildItem HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces | ` +
			`New-ItemProperty -Name TcpDelAckTicks -Value 0`, tcpipParameters + `Interfaces\*\TcpDelAckTicks = 0: ignored`},
		{"the present key", "cd HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\nSet-ItemProperty . SackOpts 1",
			tcpipParameters + "SackOpts = 1: now-default"},
		{"a property that a condition chooses", `Get-NetAdapterAdvancedProperty | Where-Object { $_.DisplayName -like ` +
			`"*Energy*" } | Set-NetAdapterAdvancedProperty -DisplayValue "Disabled"`,
			"adapter:*/Energy = Disabled: still-right"},
		{"words with blanks for a loop", "foreach ($n in 'Flow Control','Large Send Offload V2 (IPv4)') { " +
			"Set-NetAdapterAdvancedProperty -Name x -DisplayName $n -DisplayValue 'Disabled' }",
			"adapter:x/Large Send Offload V2 (IPv4) = Disabled: harmful"},
		{"a list without brackets", "$s = 'rss=enabled','ecncapability=disabled'\n" +
			"foreach ($x in $s) { netsh int tcp set global $x }", "netsh:tcp/ecncapability = disabled: now-default"},
		{"properties of a NIC on one line", `$adv = @{ 'Flow Control'='Disabled'; 'Speed & Duplex'='Auto Negotiation' } ` +
			`# Set-NetAdapterAdvancedProperty`, "adapter:*/Speed & Duplex = Auto Negotiation: now-default"},
		{"networks of storage", "Enable-NetQosFlowControl -Priority 3", "qos:flowcontrol = enable: still-right"},
		{"power of a NIC by a property", "$p.AllowComputerToTurnOffDevice = 'Disabled'\n$p | Set-NetAdapterPowerManagement",
			"adapter:*/powermanagement.allowcomputertoturnoffdevice = Disabled: still-right"},
		{"preferences of group policy", `<Properties action="U" hive="HKEY_LOCAL_MACHINE" key="SYSTEM\CurrentControlSet\` +
			`Services\Tcpip\Parameters" name="DefaultTTL" type="REG_DWORD" value="00000040"/>`,
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"WiX", `<RegistryValue Root="HKLM" Key="SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" Name="MaxUserPort" ` +
			`Type="integer" Value="65534" />`, tcpipParameters + "MaxUserPort = 65534: ignored"},
		{"the name as the title of a resource", "registry::value { 'SackOpts':\n key => 'HKLM\\SYSTEM\\CurrentControlSet\\" +
			"Services\\Tcpip\\Parameters',\n data => 1,\n}", tcpipParameters + "SackOpts = 1: now-default"},
		{"states behind each other", "a:\n  reg.present:\n    - name: HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\" +
			"Parameters\\KeepAliveTime\n    - vdata: 1\nb:\n  reg.present:\n    - name: HKLM\\SYSTEM\\CurrentControlSet\\" +
			"Services\\Tcpip\\Parameters\n    - vname: DefaultTTL\n    - vdata: '64'",
			tcpipParameters + "DefaultTTL = 64: still-right"},
		{"an item of a page", "Open regedit\n2. Create DWORD **TcpAckFrequency** = 1",
			tcpipParameters + `Interfaces\*\TcpAckFrequency = 1: still-right`},
		{"an item with a star", "Open regedit\n* Set the value of `SystemResponsiveness` to 0",
			"registry:" + profile + `\SystemResponsiveness = 0: still-right`},
		{"a type with its size", "Open regedit\n3. Create a new DWORD (32-bit) Value named `TCPNoDelay` and set it to 1.",
			tcpipParameters + "Interfaces\\*\\TCPNoDelay = 1: ignored"},
		{"hex behind the number", "Open regedit\n- NetworkThrottlingIndex: set to `ffffffff` (hex)",
			"registry:" + profile + `\NetworkThrottlingIndex = 4294967295: still-right`},
		{"an arrow", "Set netsh int and the policy\n  → EnableTCPChimney = 1",
			tcpipParameters + "EnableTCPChimney = 1: ignored"},
		{"a table with an entry cat", `@{ cat = "net"; action = { netsh int tcp set global autotuninglevel=restricted } }`,
			"netsh:tcp/autotuninglevel = restricted: harmful"},
		{"a word that a switch does not take", "netsh int tcp set global nonsackrttresiliency=ctcp",
			"netsh:tcp/nonsackrttresiliency = ctcp: ignored"},
		{"a misspelt name below a variable", `reg add "%x%" /v "TcpAckFreequency" /t REG_DWORD /d 1 /f`,
			`registry:%x%\TcpAckFreequency = 1: ignored`},
		{"letters for a number", `reg add "` + profile + `" /v "NetworkThrottlingIndex" /t REG_SZ /d "fffffff" /f`,
			"registry:" + profile + `\NetworkThrottlingIndex = fffffff: ignored`},
		{"an interface with DHCP", "Set-NetIPInterface -InterfaceAlias x -Dhcp Enabled",
			"netsh:ip/dhcp = enabled: now-default"},
		{"a binding of an adapter", `reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Adapters\NdisWanIp ` +
			`/v LLInterface /t REG_SZ /d WANARP /f`, tcpipParameters + `Adapters\NdisWanIp\LLInterface = WANARP: still-right`},
		{"hexadecimal digits alone", `reg add "` + profile + `" /v "NetworkThrottlingIndex" /t REG_DWORD /d "ffffffff" /f`,
			"registry:" + profile + `\NetworkThrottlingIndex = ffffffff: ignored`},
		{"digits with zeros in front", `reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters ` +
			`/v TcpTimedWaitDelay /t REG_DWORD /d 00000042d /f`, tcpipParameters + "TcpTimedWaitDelay = 00000042d: ignored"},
		{"two words for a property", "- \"Wake on Magic Packet\"      = \"Enabled|On\"",
			"adapter:*/Wake on Magic Packet = Enabled|On: still-right"},
		{"properties of a NIC in a sentence", "Set any \"Wake on Magic Packet\" property to Enabled and any " +
			"\"Energy Efficient Ethernet\" / \"Large Send Offload\" to Disabled, then:",
			"adapter:*/Large Send Offload = Disabled: harmful"},
		{"tags of a forum", "[FONT=Ubuntu]   netsh int ipv4 set glob defaultcurhoplimit=129[/FONT][/COLOR]",
			"netsh:ip/defaultcurhoplimit = 129: still-right"},
		{"more hops than there are", `reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters /v DefaultTTL ` +
			`/t REG_DWORD /d 32767 /f`, tcpipParameters + "DefaultTTL = 32767: ignored"},
		{"SMB of version 2", `reg add HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters /v SMB2 ` +
			`/t REG_DWORD /d 0 /f`, `registry:HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters\SMB2 = 0: harmful`},
		{"a key of another part of the registry", `reg add HKLM\SOFTWARE\Microsoft\MSTCPIP\Parameters /v TcpAckFrequency ` +
			`/t REG_DWORD /d 1 /f`, `registry:HKLM\SOFTWARE\Microsoft\MSTCPIP\Parameters\TcpAckFrequency = 1: ignored`},
		{"a value of the DNS client below TCP",
			`reg add HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters /v MaxCacheTtl /t REG_DWORD /d 86400 /f`,
			tcpipParameters + "MaxCacheTtl = 86400: ignored"},
	} {
		if got := short(judged(t, Target{}, c.text)); !slices.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWindowsSetsNothing: lines that ask for values, take them away, or are no settings.
func TestWindowsSetsNothing(t *testing.T) {
	for _, text := range []string{
		`[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters]` + "\n" + `"TcpWindowSize"=-`,
		`[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\PersistentRoutes]` + "\n" +
			`"10.0.0.0,255.0.0.0,10.1.1.1,1"=""`,
		`DetectOps = [RegOp.CheckDword(@"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\AFD\Parameters", ` +
			`"MaxUserPort", 1)],`,
		`SESSION.delete_value(_TCPIP, "MaxUserPort")`,
		`RegistryKeys = [@"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\AFD\Parameters"],`,
		`$path = "HKLM:\SYSTEM\CurrentControlSet\Services\AFD\Parameters"`,
		"HKLM\n\n| Name | Default | Range |\n|---|---|---|\n| `TcpTimedWaitDelay` | 240 | 30-300 |\n" +
			"| `KeepAliveInterval` | 1000 | |",
		"HKLM\n\n| `TcpAckFrequency` | Games use UDP |\n| Flow Control | how the link pauses |",
		`_backup.RestoreRegistryValue(@"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters", "DefaultTTL", 128);`,
		`@REM netsh int ip set global routecachelimit=4096`,
		`undo = { netsh int tcp set global autotuninglevel=normal 2>$null }`,
		"Revert = {\n Set-ItemProperty -Path \"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\" " +
			"-Name DefaultTTL -Value 128\n}",
		`const RevertCommand = "Set-NetIPInterface -InterfaceAlias \"Wi-Fi\" -AutomaticMetric Enabled";`,
		"Open regedit\nTcpTimedWaitDelay is 240 by default",
		`$checks = @{Path="HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters"; Name="TcpAckFrequency"; Desc="ACKs"}`,
	} {
		if got := short(judged(t, Target{}, text)); len(got) > 0 {
			t.Errorf("%s: %s", text, strings.Join(got, "; "))
		}
	}
}

// TestWindowsOfHostileTexts: what loops and tables become is bounded.
func TestWindowsOfHostileTexts(t *testing.T) {
	testenv.Need(t, testenv.Long)
	words := strings.Repeat("'a',", 60) + "'b'"
	loops := strings.Repeat("foreach ($x in @("+words+")) {\n", 40) +
		strings.Repeat("Set-ItemProperty -Path $x -Name $x -Value $x\n", 1000)
	table := "$p = @{\n" + strings.Repeat("Aaaaaaaaa = 'bbbbbbbbbbbbb'\n", 50) + "}\n" +
		strings.Repeat("Set-NetTCPSetting"+strings.Repeat(" @p", 100)+"\n", 500)
	for name, text := range map[string]string{"loops": loops, "tables": table} {
		a, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(a.Settings); n > 200000 {
			t.Errorf("%s: %d settings of %d bytes", name, n, len(text))
		}
		t.Logf("%s: %d settings, %d unread", name, len(a.Settings), len(a.Unread))
	}
}
