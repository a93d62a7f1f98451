package advice

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// cmdlets are the commands of PowerShell that set what netsh and the registry set, by their names
// in small letters. The value is the setting that the command alone names, NAME=VALUE; empty where
// its parameters do.
//
// Names are those of netsh, so that one fact serves both spellings of a setting. Offloads of single
// NICs have no counterpart in netsh; they are named adapter:NIC/PROPERTY.
//
// Source: learn.microsoft.com/powershell/module/nettcpip, /netadapter, /netqos and /smbshare.
var cmdlets = table(`set-nettcpsetting= set-netudpsetting= set-netoffloadglobalsetting= set-netipinterface=
	set-netipv4protocol= set-netipv6protocol= set-itemproperty= set-gpregistryvalue= new-itemproperty=
	set-netadapteradvancedproperty= set-netadapterrsc= set-netadapterlso= set-netadapterchecksumoffload=
	set-netadaptervmq= set-netadapteruso= set-netadapterrss= set-netadapterpowermanagement=
	set-netadapterrdma= set-netadapteripsecoffload= set-netadaptersriov= set-netadapterqos=
	set-netqosdcbxsetting= new-netqostrafficclass= set-netqostrafficclass= enable-netqosflowcontrol=
	disable-netqosflowcontrol= set-smbbandwidthlimit= set-smbclientconfiguration=
	set-smbserverconfiguration= new-netqospolicy= set-netqospolicy= enable-netadapterrss=rss=enabled
	disable-netadapterrss=rss=disabled enable-netadapterrsc=rsc=enabled
	disable-netadapterrsc=rsc=disabled set-netisatapconfiguration= set-net6to4configuration=
	set-netteredoconfiguration=`)

// adapterSwitches are the nouns of Enable- and Disable-NetAdapterNOUN, which switch one property of
// a NIC.
var adapterSwitches = []string{"lso", "checksumoffload", "qos", "rdma", "vmq", "sriov", "powermanagement",
	"encapsulatedpackettaskoffload", "ipsecoffload", "uso", "uro", "packetdirect"}

// adapterSwitch returns the noun and the value of such a command.
func adapterSwitch(name string) (noun, value string, ok bool) {
	verb, noun, _ := strings.Cut(name, "-netadapter")
	for _, n := range adapterSwitches {
		if n == noun && (verb == "enable" || verb == "disable") {
			return noun, verb + "d", true
		}
	}
	return "", "", false
}

// unreadCmdlet are the other commands that set something of the network, and misspelt ones.
var unreadCmdlet = pattern.New(`^(?:set|enabled?|disabled?|new)-` +
	`(?:net(?:adap|tcp|udp|offload|ip|qos)|smb|vmnetworkadap|vmswitch)\w*$`)

// notTuning are commands of the same modules that give addresses, names and filters.
var notTuning = pattern.New(`^(?:set|enable|disable|new|remove)-(?:netipaddress|netroute|netipsec\w*|` +
	`netadapter|netadapterbinding|netfirewall\w*|netipconfiguration|smbshare|smbmapping|netneighbor|` +
	`nettransportfilter)$`)

// cmdletParameters maps parameters of Set-NetTCPSetting, Set-NetOffloadGlobalSetting,
// Set-NetIPInterface and Set-NetIPv4Protocol to settings of netsh.
var cmdletParameters = table(`-autotuninglevellocal=autotuninglevel -congestionprovider=congestionprovider
	-ecncapability=ecncapability -timestamps=timestamps -scalingheuristics=heuristics
	-initialrto=initialrto -maxsynretransmissions=maxsynretransmissions
	-nonsackrttresiliency=nonsackrttresiliency -chimney=chimney -receivesidescaling=rss
	-receivesegmentcoalescing=rsc -packetcoalescingfilter=packetcoalescing -networkdirect=networkdirect
	-networkdirectacrossipsubnets=networkdirectacrossipsubnets -taskoffload=taskoffload -forcews=forcews
	-memorypressureprotection=mpp -initialcongestionwindowmss=icw -initialcongestionwindow=icw
	-minrtoms=minrto -minrto=minrto -initialrtoms=initialrto -delayedacktimeoutms=delayedacktimeout
	-delayedacktimeout=delayedacktimeout -delayedackfrequency=delayedackfrequency
	-cwndrestart=enablecwndrestart -automaticusecustom=automaticusecustom -receiveuro=uro
	-nlmtubytes=mtu -nlmtu=mtu -interfacemetric=metric -automaticmetric=automaticmetric
	-weakhostsend=weakhostsend -weakhostreceive=weakhostreceive -forwarding=forwarding
	-advertising=advertise -routerdiscovery=routerdiscovery -ecnmarking=ecnmarking -dhcp=dhcp
	-neighborunreachabilitydetection=nud -basereachabletimems=basereachabletime
	-retransmittimems=retransmittime -dadtransmits=dadtransmits -ignoredefaultroutes=ignoredefaultroutes
	-clampmss=clampmss -defaulthoplimit=defaultcurhoplimit -neighborcachelimitentries=neighborcachelimit
	-routecachelimitentries=routecachelimit -reassemblylimitbytes=reassemblylimit
	-icmpredirects=icmpredirects -sourceroutingbehavior=sourceroutingbehavior
	-dhcpmediasense=dhcpmediasense -mediasenseeventlog=mediasenseeventlog -igmplevel=igmplevel
	-igmpversion=igmpversion -mldlevel=mldlevel -mldversion=mldversion
	-multicastforwarding=multicastforwarding -groupforwardedfragments=groupforwardedfragments
	-randomizeidentifiers=randomizeidentifiers -addressmaskreply=addressmaskreply -minimummtu=minmtu
	-deadgatewaydetection=deadgatewaydetection -usetemporaryaddresses=useipv6temporaryaddresses
	-loopbackexecutionmode=loopbackexecutionmode -loopbacklargemtu=loopbacklargemtu
	-loopbackworkercount=loopbackworkercount -reassemblyoutoforderlimit=reassemblyoutoforderlimit`)

// parameter returns the setting of a parameter, which PowerShell takes by any unambiguous
// beginning.
func parameter(p string) string {
	if ours := cmdletParameters[p]; ours != "" {
		return ours
	}
	found := ""
	for full, ours := range cmdletParameters {
		if len(p) < 5 || !strings.HasPrefix(full, p) {
			continue
		}
		if found != "" && found != ours {
			return ""
		}
		found = ours
	}
	return found
}

// selecting are parameters that choose what a command works on and set nothing.
var selecting = setOf(`-name -interfacealias -interfaceindex -settingname -addressfamily -interfacedescription -force
	-confirm -erroraction -policystore -whatif -passthru -cimsession -asjob -norestart -ea -verbose
	-includehidden`)

// selectedBy adds to Set-NetAdapterAdvancedProperty what the command before it in the pipeline has
// chosen: Get-NetAdapterAdvancedProperty -DisplayName "Jumbo*" | Set-NetAdapterAdvancedProperty ….
func (c command) selectedBy(from command) command {
	if from.name() == "get-netadapteradvancedproperty" && c.name() == "set-netadapteradvancedproperty" {
		c.words = slices.Concat(c.words[:1], from.words[1:], c.words[1:])
	}
	// Get-ChildItem KEY | New-ItemProperty -Name NAME: below the key.
	if strings.HasSuffix(c.name(), "-itemproperty") && !slices.ContainsFunc(c.words, func(w string) bool {
		return strings.HasPrefix(strings.ToLower(w), "-path") || strings.EqualFold(w, "-literalpath") || isKey(w)
	}) {
		for _, w := range from.words {
			if isKey(w) {
				c.words = slices.Concat(c.words[:1], []string{"-Path", strings.TrimRight(w, `\*`) + `\*`}, c.words[1:])
				break
			}
		}
	}
	return c
}

// truth writes the truth values of PowerShell as the facts have them.
var truth = strings.NewReplacer("$true", "enabled", "$True", "enabled", "$false", "disabled", "$False", "disabled")

// cmdlet reads one of them. Parameters come in any order; names and values are the same in either
// case, as PowerShell has it.
func (r *reader) cmdlet(c command) bool {
	if noun, value, ok := adapterSwitch(c.name()); ok {
		r.add(Windows, "adapter:*/"+noun, value)
		return true
	}
	if setting := cmdlets[c.name()]; setting != "" {
		if len(c.words) > 2 && !strings.HasPrefix(c.words[1], "-") && !strings.HasPrefix(c.words[2], "-") {
			return false // a sentence about it
		}
		name, value, _ := strings.Cut(setting, "=")
		r.add(Windows, "netsh:tcp/"+name, value)
		return true
	}
	var pairs []string
	for _, w := range c.words[1:] {
		if name, value, ok := strings.Cut(w, ":"); ok && value != "" && strings.HasPrefix(w, "-") { // -Name:Value
			pairs = append(pairs, name)
			w = value
		}
		pairs = append(pairs, truth.Replace(w))
	}
	before := len(r.advice.Settings)
	defer func() {
		// A misspelt parameter, or one that is not known here.
		piped := c.piped && len(pairs) == 0 // what comes through the pipeline has been changed before
		if len(r.advice.Settings) == before && !piped && !strings.HasSuffix(c.name(), "itemproperty") &&
			c.name() != "set-gpregistryvalue" && !(r.fromTable && strings.Contains(r.shown, " $")) {
			r.unread()
		}
	}()
	switch c.name() {
	case "set-netadapteradvancedproperty":
		r.adapter(pairs)
	case "set-netadapterrsc", "set-netadapterrss", "set-netadapterpowermanagement", "set-netadapterlso",
		"set-netadapterchecksumoffload", "set-netadaptervmq", "set-netadapteruso", "set-netadapterrdma",
		"set-netadapteripsecoffload", "set-netadaptersriov", "set-netadapterqos", "set-netadapteruro":
		r.namedParameters("adapter:*/"+strings.TrimPrefix(c.name(), "set-netadapter")+".", pairs)
	case "set-smbclientconfiguration":
		r.namedParameters("smb:client/", pairs)
	case "set-smbserverconfiguration":
		r.namedParameters("smb:server/", pairs)
	case "set-netisatapconfiguration", "set-net6to4configuration", "set-netteredoconfiguration":
		tunnel := strings.TrimSuffix(strings.TrimPrefix(c.name(), "set-net"), "configuration")
		for i := 0; i+1 < len(pairs); i++ {
			if p := strings.ToLower(pairs[i]); p == "-state" || p == "-type" {
				r.add(Windows, "netsh:"+tunnel+"/state", strings.ToLower(pairs[i+1]))
			}
		}
	case "set-smbbandwidthlimit":
		r.namedParameters("smb:bandwidthlimit/", pairs)
	case "new-netqospolicy", "set-netqospolicy":
		r.add(Windows, "qos:policy", "set")
	case "set-netqosdcbxsetting", "new-netqostrafficclass", "set-netqostrafficclass", "enable-netqosflowcontrol",
		"disable-netqosflowcontrol": // of a network for storage
		verb, noun, _ := strings.Cut(c.name(), "-netqos")
		r.add(Windows, "qos:"+noun, verb)
	case "set-netipinterface", "set-netipv4protocol":
		r.parameters("netsh:ip/", pairs)
	case "set-netipv6protocol":
		r.parameters("netsh:ipv6/", pairs)
	case "set-netudpsetting":
		r.parameters("netsh:udp/", pairs)
	case "set-nettcpsetting", "set-netoffloadglobalsetting":
		r.parameters("netsh:tcp/", pairs)
	default:
		r.itemProperty(pairs)
	}
	return true
}

// parameters adds the parameters that are settings of netsh, and the range of ports, which is one
// setting.
//
// A parameter has one value behind it, which is quoted if it has blanks; switches (-Force,
// -Confirm:$false) have none, and the word behind them is then looked at as a parameter in its
// turn.
func (r *reader) parameters(context string, words []string) {
	start, count := "", ""
	for i := 0; i+1 < len(words); i++ {
		p := strings.ToLower(words[i])
		switch {
		case strings.HasPrefix(p, "-dynamicportrangestart"):
			start = words[i+1]
		case strings.HasPrefix(p, "-dynamicportrangenumber"):
			count = words[i+1]
		case selecting[p] || !strings.HasPrefix(p, "-"):
		default:
			if ours := parameter(p); ours != "" {
				r.add(Windows, context+ours, strings.ToLower(words[i+1]))
			}
		}
	}
	if start != "" && count != "" {
		context = strings.Replace(context, "tcp", "ip", 1)
		r.add(Windows, context+"dynamicport", start+" "+count)
	}
}

// namedParameters adds every parameter under its own name.
func (r *reader) namedParameters(prefix string, words []string) {
	for i := 0; i+1 < len(words); i++ {
		p := strings.ToLower(words[i])
		if strings.HasPrefix(p, "-") && !selecting[p] && !strings.HasPrefix(words[i+1], "-") && !strings.Contains(p, ":") {
			r.add(Windows, prefix+p[1:], strings.ToLower(words[i+1]))
			i++
		}
	}
}

// location keeps the key that the commands behind work in: cd HKLM:\SYSTEM\….
func (r *reader) location(c, _ command) bool {
	r.key = ""
	r.place = ""
	if n := len(c.words); n > 1 && isKey(c.words[n-1]) {
		r.place = c.words[n-1]
	}
	return r.place != ""
}

// itemProperty reads Set-ItemProperty and New-ItemProperty. PropertyType is not asked, as the type
// of reg add is not. The path, the name and the value may stand without their parameters, in this
// order.
func (r *reader) itemProperty(words []string) {
	var path, name, value string
	var loose []string
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch p := strings.ToLower(words[i]); {
		case p == "-path" || p == "-literalpath" || p == "-key":
			path = next
			i++
		case p == "-name" && i > 0 && strings.EqualFold(words[0], "set-gpregistryvalue"):
			i++ // of the policy
		case p == "-name" || p == "-valuename" || p == "-n" || p == "-property":
			name = next
			i++
		case p == "-value" || p == "-v" || p == "-dec" || p == "-dword": // -dec, -dword and -hex are of functions of scripts
			value = next
			i++
		case p == "-hex":
			value = "0x" + next
			i++
		case p == "-type" || p == "-t" || strings.HasPrefix(p, "-propertyt") || p == "-erroraction" || p == "-ea":
			i++
		case strings.HasPrefix(p, "-"):
		default:
			loose = append(loose, words[i])
		}
	}
	for _, to := range []*string{&path, &name, &value} {
		if *to == "" && len(loose) > 0 {
			*to, loose = loose[0], loose[1:]
		}
	}
	if path == "." || strings.HasPrefix(path, `.\`) {
		path = r.place + path[1:]
	}
	// Other providers than the registry have items as well; a registry path begins with its hive
	// and a colon.
	path = strings.ReplaceAll(strings.TrimPrefix(path, "Registry::"), `\\`, `\`) // of a string of a program
	path = strings.TrimPrefix(path, `Microsoft.PowerShell.Core\Registry::`)
	hive, rest, ok := strings.Cut(path, ":")
	if !ok {
		hive, rest, ok = strings.Cut(shortHive(path), `\`)
	}
	if ok && strings.HasPrefix(strings.ToUpper(hive), "HK") && name != "" && value != "" {
		r.add(Windows, "registry:"+strings.ToUpper(hive)+`\`+strings.Trim(rest, `\`)+`\`+name, number(value))
		return
	}
	// A path in a variable: only the name says that it is a setting of the network.
	if !strings.HasPrefix(path, "$") || value == "" {
		return
	}
	if _, known := factOf(Windows, tcpipKey+name); known || registryNamed(name) != "" {
		r.add(Windows, "registry:"+path+`\`+name, number(value))
	}
}

// adapter reads Set-NetAdapterAdvancedProperty, whose properties have the names of the driver.
func (r *reader) adapter(words []string) {
	nic, property, value := "*", "", ""
	for i := 0; i+1 < len(words); i++ {
		// -DisplayName "Flow Control"-DisplayValue "Disabled": a forgotten blank.
		w, next := words[i], words[i+1]
		if at := strings.Index(w, "-DisplayValue"); at > 0 {
			property, w = w[:at], w[at:]
		}
		switch strings.ToLower(w) {
		case "-name":
			nic = next
		case "-displayname", "-registrykeyword":
			property = strings.TrimSuffix(strings.Split(next, "-Display")[0], " ")
			if part, ok := strings.CutSuffix(property, "*"); ok { // any property of such a name
				property = strings.TrimPrefix(part, "*")
			}
			property = strings.TrimSuffix(strings.TrimPrefix(property, "^"), "$")
		case "-displayvalue", "-registryvalue":
			value = next
		}
	}
	if property == "" || value == "" {
		r.unread()
		return
	}
	r.add(Windows, "adapter:"+nic+"/"+property, value)
}
