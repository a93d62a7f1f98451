package advice

import "strings"

// cmdlets are the commands of PowerShell that set what netsh and the registry set, by their names
// in small letters. The value is the setting that the command alone names, NAME=VALUE; empty where
// its parameters do.
//
// Names are those of netsh, so that one fact serves both spellings of a setting. Offloads of single
// NICs (Disable-NetAdapterLso, Set-NetAdapterAdvancedProperty) are not included: netsh has no
// counterpart, and they serve a single failing NIC.
//
// Source: learn.microsoft.com/powershell/module/nettcpip and /netadapter.
var cmdlets = map[string]string{
	"set-nettcpsetting":           "",
	"set-netoffloadglobalsetting": "",
	"set-itemproperty":            "",
	"new-itemproperty":            "",
	"enable-netadapterrss":        "rss=enabled",
	"disable-netadapterrss":       "rss=disabled",
	"enable-netadapterrsc":        "rsc=enabled",
	"disable-netadapterrsc":       "rsc=disabled",
}

// cmdletParameters maps parameters of Set-NetTCPSetting and Set-NetOffloadGlobalSetting to settings
// of netsh.
var cmdletParameters = map[string]string{
	"-autotuninglevellocal":     "autotuninglevel",
	"-congestionprovider":       "congestionprovider",
	"-ecncapability":            "ecncapability",
	"-timestamps":               "timestamps",
	"-scalingheuristics":        "heuristics",
	"-initialrto":               "initialrto",
	"-maxsynretransmissions":    "maxsynretransmissions",
	"-nonsackrttresiliency":     "nonsackrttresiliency",
	"-chimney":                  "chimney",
	"-receivesidescaling":       "rss",
	"-receivesegmentcoalescing": "rsc",
	"-taskoffload":              "taskoffload",
}

// cmdlet reads one of them. Parameters come in any order; names and values are the same in either
// case, as PowerShell has it.
func (r *reader) cmdlet(c command) bool {
	if setting := cmdlets[c.name()]; setting != "" {
		name, value, _ := strings.Cut(setting, "=")
		r.add(Windows, "netsh:tcp/"+name, value)
		return true
	}
	// A parameter has one value behind it, which is quoted if it has blanks; switches (-Force,
	// -Confirm:$false) have none, and the word behind them is then looked at as a parameter in its
	// turn. PropertyType is not asked, as the type of reg add is not.
	var path, name, value string
	pairs := c.words[1:]
	for i := 0; i+1 < len(pairs); i++ {
		switch p := strings.ToLower(pairs[i]); p {
		case "-path", "-literalpath":
			path = pairs[i+1]
		case "-name":
			name = pairs[i+1]
		case "-value":
			value = pairs[i+1]
		default:
			if ours := cmdletParameters[p]; ours != "" {
				r.add(Windows, "netsh:tcp/"+ours, strings.ToLower(pairs[i+1]))
			}
		}
	}
	// Other providers than the registry have items as well; a registry path begins with its hive
	// and a colon.
	if hive, rest, ok := strings.Cut(path, ":"); ok && strings.HasPrefix(strings.ToUpper(hive), "HK") && name != "" &&
		value != "" {
		r.add(Windows, "registry:"+strings.ToUpper(hive)+`\`+strings.Trim(rest, `\`)+`\`+name, number(value))
	}
	return true
}
