package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/knob"
)

// Parse reads a text of any mixture of forms. The error is ErrNotText or ErrTooLong.
func Parse(data []byte) (Advice, error) {
	text, err := decode(data)
	if err != nil {
		return Advice{}, err
	}
	text = withoutBlockComments(text)
	if strings.Contains(text, `HKEY\_`) { // a page of Markdown that escapes the signs of keys
		text = strings.NewReplacer(`\_`, "_", `\\`, `\`).Replace(text)
	}
	r := &reader{
		isScript:   strings.HasPrefix(text, "#!"),
		grouped:    groupIntoFile.MatchString(text),
		nixos:      strings.Contains(text, "kernel.sysctl"),
		prints:     len(printedSetting.FindAllStringIndex(text, fewPrinted)) == fewPrinted,
		used:       usedVariables(text),
		tuned:      sysctlSection.MatchString(text),
		nicKeys:    nicKeys(text),
		keyed:      map[int]bool{},
		writesKeys: writesByName.MatchString(text),
		windows:    aboutRegistry.MatchString(text),
		of:         interfaceFile{keyfile: keyfileHead.MatchString(text), netplan: netplanHead.MatchString(text)},
	}
	lines, physical := logicalLines(text)
	lines = joinLists(text, commandsWithArguments(text, filesInStrings(text, namedKeys(text, lines))))
	r.advice.Lines = physical
	r.script, r.unprompted = newScript(text, lines), calls(lines)
	run := workedOut(text, lines, r.script.power.body)
	lines = interfaceEntries(text, repeatedLines(text, lines))
	for _, l := range lines {
		r.line, r.shown = l, shortened(l.text)
		if commands := run[l.number]; commands != nil {
			r.script.powerLines(l.text) // its braces count
			for _, c := range commands {
				r.line.text = c
				r.read()
			}
			continue
		}
		if r.script.body[l.number] || r.script.power.body[l.number] {
			continue // its calls are read
		}
		if r.element(l.text) {
			continue
		}
		for _, p := range pieces(l.text) {
			r.readLine(p, 0)
		}
	}
	r.literal(text, lines)
	r.ownFile(text)
	r.tellSystems(text)
	return r.advice, nil
}

// reader goes through a text from top to bottom. What it remembers between lines is the key of a
// registry file, the section of an ini file, the head of a table, and a name whose value is on a
// later line.
type reader struct {
	advice      Advice
	script      *script         // variables, loops and functions
	isScript    bool            // the text begins with #!, so that # always begins a comment
	unprompted  map[string]bool // first words of lines: what # hides is a comment where they are commands
	grouped     bool            // a group of commands of the text writes into a file
	nixos       bool            // it is a configuration of NixOS
	prints      bool            // it prints a file of settings
	used        map[string]bool // variables that the text uses, so that their assignments are no settings
	key         string          // registry key that values belong to, HKLM\…
	quoting     bool            // the strings of the line are being read
	place       string          // key that a script of PowerShell has gone to
	section     string          // [section] of an ini file, without the part behind a dot
	of          interfaceFile   // files of interfaces
	nix         bool            // within one of its sets for an interface
	tuned       bool            // the sections are those of a TuneD profile
	valueColumn int             // of the present table; 0: the column behind the name
	pending     string          // sysctl whose value follows
	nest        nest            // what lines above have said about settings that go on below
	depth       int             // commands within commands, and strings within strings
	fromTable   bool            // a table of values of the registry has been read
	writesKeys  bool            // the text writes values of the registry
	nicKeys     map[string]bool // variables of loops of a batch file that are keys of NICs
	keyed       map[int]bool    // lines that have a key of the registry when they are written out
	answerAt    int             // line where what a command shows may stand
	dwordOf     string          // value of the registry whose number may follow
	windows     bool            // the text is about the registry or NICs of Windows
	line        line
	shown       string // the line as settings carry it
}

const fewPrinted = 3 // such lines that show a file

// variableUse is the use of a variable, in a shell, in a batch file or in PowerShell.
var variableUse = pattern.New(`\$\{?([A-Za-z_]\w*)|%([A-Za-z_]\w*)%`)

// usedVariables returns the names of the variables that a text uses.
func usedVariables(text string) map[string]bool {
	used := map[string]bool{}
	for _, m := range variableUse.FindAllStringSubmatch(text, -1) {
		used[m[1]+m[2]] = true
	}
	return used
}

// shortened cuts a line to what a reader needs to find it again. Every setting of a line carries
// it, so that a file of one line with a hundred thousand settings would otherwise take gigabytes.
func shortened(text string) string {
	const longest = 400
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// cutVariable is a part of a variable, whose colon is no sign of an interface: ${dev:0:-1}.
var cutVariable = pattern.New(`(\$\{\w+):[^{}]*\}`)

// outputOf is an interface that a command prints, with slashes in the command.
var outputOf = pattern.New(`^(ethtool:|link:|qdisc:)\$\(.*/.*\)/`)

// add records a setting of the present line. Names that package knob can parse get its spelling, so
// that facts, catalogue and present value use one name, independent of the text's spelling.
func (r *reader) add(o OS, name, value string) {
	name = outputOf.ReplaceAllString(cutVariable.ReplaceAllString(name, "$1}"), "$1*/")
	if id, err := knob.ParseID(name); err == nil {
		name = string(id)
	}
	// The line of a loop over a table says nothing beside the lines of the table, and a route is no
	// setting.
	isRegistry := strings.HasPrefix(name, "registry:")
	if r.fromTable && (isRegistry && openName(name) || strings.Contains(name, "/$")) ||
		isRegistry && strings.Contains(strings.ToLower(name), `\persistentroutes\`) {
		return
	}
	// The star marks the keywords of NICs that Microsoft has standardised, wherever the key is from.
	if key, keyword, ok := strings.Cut(name, `\*`); ok && isRegistry && !strings.ContainsAny(keyword, `\*`) &&
		!strings.Contains(strings.ToLower(key), "{4d36e972") && !strings.Contains(strings.ToLower(key), `\enum\`) {
		name = "registry:" + nicClass + `\*` + keyword
	}
	r.advice.Settings = append(r.advice.Settings, Setting{
		Line: r.line.number, Text: r.shown, OS: o, Knob: name, Value: strings.Join(strings.Fields(value), " "),
	})
}

// read takes the present line, or a piece of it. The forms are tried from the most particular to
// the most general; each reports whether the line is of its form, also when it sets nothing.
func (r *reader) read() {
	// Manual pages write a number sign for the number of a device: dev.ix.#.fc.
	text := strings.ReplaceAll(r.line.text, ".#.", ".*.")
	if r.windows { // NAME: 10 → 20 changes the one into the other
		text = changes.ReplaceAllString(text, "$1$2")
	}
	if settingCommands.MatchString(text) { // the id of a state of Salt
		text = strings.TrimSuffix(text, ":")
	}
	if r.line.number == r.answerAt && answer.MatchString(text) {
		r.answerAt++
		return
	}
	if text == "" || r.registry(text) || r.sectionHead(text) || fence(text) {
		return
	}
	if r.nested(text) || r.task(text) || r.deviceRule(text) || r.keyCell(text) {
		return
	}
	if item := bullet.ReplaceAllString(text, ""); item != text && r.item(item) {
		return
	}
	unit := unitCommand.FindString(text)
	if unit == text {
		return // it takes back the commands before it
	}
	commands, ok := r.uncommented(text[len(unit):])
	if !ok {
		return
	}
	if unit != "" { // it runs programs, most of which set nothing
		if !r.commands(commands) {
			r.within(text)
		}
		return
	}
	if listInCode.MatchString(text) && r.within(text) || r.namesOnly(text) || r.infLine(text) ||
		r.commands(commands) || r.profile(text) || r.interfaceLine(text) || r.list(text) {
		return
	}
	for _, form := range []func(string) bool{
		r.kernelOption, r.moduleOptions, r.etcSystem, r.driverConf, r.mounted, r.named, r.unbound, r.bootLine, r.assignment,
		r.hostname, r.table, r.pair, r.spread, r.bare, r.within,
		r.prose,
	} {
		if form(text) {
			return
		}
	}
	if r.assignsVariable(text) {
		return
	}
	if (unitSections[r.section] || strings.HasSuffix(r.section, "Class")) && unitKey.MatchString(text) ||
		strings.HasPrefix(text, "GRUB_") || modulesOfNix.MatchString(text) {
		return
	}
	if looksLikeSetting.MatchString(text) && !strings.HasSuffix(text, "{") && !strings.Contains(text, " => ") &&
		!headOfBlock.MatchString(text) && !saysInWords(text) && !readsRegistry.MatchString(text) &&
		!listOfKeys.MatchString(text) && !r.optionOfNix(text) && !inProgram(text) ||
		mentions(text) || tableOfNet.MatchString(text) || hidden.MatchString(text) {
		r.unread()
	}
}

// item reads an item of a list. It is no more than a setting or a command: what follows the mark of
// a comment of C looks the same.
func (r *reader) item(text string) bool {
	commands := splitCommands(text)
	if len(commands) > 0 && commandTable(commands[0].unwrap().name()) != nil {
		return r.commands(commands)
	}
	return r.assignment(text) || r.pair(text) || r.spread(text) || r.within(text) || r.saidOfRegistry(text)
}

// fence reports whether a line only opens or closes a block of code.
func fence(text string) bool {
	return strings.HasPrefix(text, "```") && !strings.Contains(text[3:], "`") && !strings.ContainsAny(text, "=") ||
		text == "~~~"
}

// changes is a name, what its value is and what it becomes, in a page.
var changes = pattern.New(`^((?:[-*+]\s+)?[*` + "`" + `]*[A-Z]\w+[*` + "`" + `]*:\s*)\w+\s*(?:→|->)\s*(\w+\b.*)$`)

// assignsVariable reports whether a line sets a variable of a script and nothing else: IF=eth0 at
// the head of half of all tuning scripts.
func (r *reader) assignsVariable(text string) bool {
	if !shellVariable.MatchString(text) {
		return false
	}
	if counted.MatchString(text) && !hidden.MatchString(text) {
		return true
	}
	name, _, _ := strings.Cut(text[strings.LastIndex(text[:strings.Index(text, "=")], " ")+1:], "=")
	return r.isScript || r.used[strings.TrimSuffix(name, "+")]
}

// commands passes the commands of a line to their readers, and reports whether a reader understood
// one.
func (r *reader) commands(commands []command) bool {
	// All of them are asked, also behind one that was understood: modprobe e1000 && ethtool -G eth0
	// rx 4096.
	const most = 8
	if r.depth >= most {
		r.unread()
		return true
	}
	r.depth++
	defer func() { r.depth-- }()
	known := false
	for i, c := range commands {
		var from command
		if c.piped && i > 0 {
			from = commands[i-1]
		}
		known = r.command(c.unwrap(), from.unwrap()) || known
	}
	return known
}

// unread records the present line as one whose setting cannot be judged. Several such commands of
// one line count once.
func (r *reader) unread() {
	if n := len(r.advice.Unread); n > 0 && r.advice.Unread[n-1].Line == r.line.number {
		return
	}
	r.advice.Unread = append(r.advice.Unread, Setting{Line: r.line.number, Text: r.shown})
}

// shellVariable is an assignment of the shell, which stands no blanks around the sign and no dots
// in the name.
var shellVariable = pattern.New(`^(?:export |local |readonly |set )?[A-Za-z_]\w*\+?=`)

// modulesOfNix is the list of modules that NixOS loads: it loads code and sets nothing.
var modulesOfNix = pattern.New(`^boot\.(?:initrd\.)?(?:available)?[kK]ernelModules\s*=`)

// looksLikeSetting distinguishes an unknown assignment from a sentence: one word, an equals sign,
// and text after it.
var looksLikeSetting = pattern.New(`^[\w./:*-]+\s*=\s*\S`)

// saysInWords reports whether a line gives a name something in quotes that no setting of the
// network takes: a title, a path, the name of a program. Switches and numbers in quotes set.
func saysInWords(text string) bool {
	m := inWords.FindStringSubmatch(text)
	return m != nil && !strings.Contains(m[1], ".") && !strings.HasPrefix(strings.ToLower(m[1]), "registry") &&
		!switchWord.MatchString(m[2]) ||
		ofServices.MatchString(text)
}

var (
	inWords    = pattern.New(`^([\w.-]+)\s*=\s*["']([A-Za-z/#][^"'=]*)["'][;,]?$`)
	switchWord = pattern.New(`(?i)^(?:on|off|yes|no|true|false|enabled?|disabled?|auto|full|half)$|\d`)
	// ofServices is a line of rc.conf or loader.conf about a program, the console or the menu, or
	// one of ifcfg files, of networkd or of NixOS that names and addresses.
	ofServices = pattern.New(`^(?:\w+_(?:enable|flags|program|delay)|boot_\w+|comconsole_\w+|beastie_\w+|loader_\w+)=|` +
		`^(?:NAME|Name|ONBOOT|NM_CONTROLLED|DEFROUTE|USERCTL|DHCP|address|slaves|networking\.use\w+|dhcp\w+\.\w+)\s*=`)
)

// headOfBlock begins a list, a set or a text of Nix or another language; its content is on lines
// of its own, or has no number.
var headOfBlock = pattern.New(`^[A-Za-z_][\w.]*\s*=\s*(?:.*''|[frb]?"""|\[[^\d\]]*\]?;?|\{|\()$`)

// inProgram reports whether a line is a command, an argument of a call by its name, or gives a
// variable the result of a call. None is a setting unless its name is of the network.
func inProgram(text string) bool {
	return withEnvironment.MatchString(text) ||
		ofCall.MatchString(text) && !ofNetworkName.MatchString(text[:strings.IndexByte(text, '=')])
}

// withEnvironment is a command with variables of the environment before it.
var withEnvironment = pattern.New(`^(?:[A-Z][A-Z0-9_]*=\S*\s+)+[a-z][\w-]*\s`)

var ofCall = pattern.New(`^[a-z_]\w*(?:=(?:[^",]*|"[^"]*"|'[^']*'),$|\s?=\s?[\w.]+\(.*\)$)`)

// optionOfNix reports whether a line is an option of NixOS that is none of the network, or switches
// a service.
func (r *reader) optionOfNix(text string) bool {
	return r.nixos && plainOption.MatchString(text) && (!ofNetworkName.MatchString(text) || nixSwitch.MatchString(text))
}

var (
	plainOption   = pattern.New(`^[a-z][\w.]*\s*=\s*(?:"[^"]*"|true|false|\w+);$`)
	nixSwitch     = pattern.New(`\.enable\s*=`)
	ofNetworkName = pattern.New(`net|mtu|tcp|udp|[Bb]uffer|queue`)
)

// listOfKeys is a list with the key of the registry that lines below it are about.
var listOfKeys = pattern.New(`(?i)^\w+\s*=\s*\[\s*@?r?["']hk\w+\\[^"']*["']\s*\],?$`)

// counted is an assignment of what the shell works out, or of what a command prints.
var counted = pattern.New(`^\w+=\$\(.*\)$`)

// listInCode are several commands within one pair of backquotes.
var listInCode = pattern.New(
	"(?i)`\\s*(?:netsh|reg add|(?:set|new|enable|disable)-\\w+|sysctl|ethtool)\\s[^`]*;[^`]*`")

// hidden is a command that sets something of the network, in a line of a form that is not read.
var hidden = pattern.New(`(?i)\b(?:netsh\s+int\w*\s+\w+\s+set|` +
	`reg(?:\.exe)?\s+add\s+\S*hk|ethtool\s+-[KGCLA]\s|` +
	`(?:set|enable|disable)-netadapter(?:lso|rsc|rss|checksum|advanced)\w*\s+-|sysctl\s+-w\s+\w+\.|` +
	`ifconfig\s+\S+\s+(?:mtu|txqueuelen)\s|ip\s+link\s+set\s+\S.*\s(?:mtu|txqueuelen)\s)|["']802-3-ethernet\.mtu["']`)

// tableOfNet is a row of a table for a name below net that no system here has, for two names, or
// for a keyword of a NIC, with a number.
var tableOfNet = pattern.New("^\\|\\s*`\\*[A-Z]\\w+`\\s*\\|.*\\d|" +
	"^\\|\\s*[`\"]?net\\.[a-z][a-z0-9_]*(?:\\.\\w+)+[`\"]?\\s*[,|].*\\|.*\\d")

// prompt is the prompt of a shell before a command, in texts copied from a terminal: "# ",
// "Solaris# ", "root@host:~# ", "[root@host ~]# ", "$", "C:\>", "PS C:\> ". The sign may have
// got lost behind "[root@host ~]".
var prompt = pattern.New(`^(?:(?:PS )?(?:\[[^\]]*\]|[\w.@~:/\\-]*)\s?[#$%>]\s*|\[\w+@[^\]]*\]\s+)`)

// uncommented returns the commands of a line, or false for a comment.
//
// "# sysctl -w …" is a comment in a script and a prompt in a transcript. In a text that begins with
// #! it is a comment; elsewhere it is a prompt when a command that we know follows, because that is
// how instructions are written down. "#sysctl -w …" is a comment where sysctl begins other lines.
func (r *reader) uncommented(text string) ([]command, bool) {
	if p := prompt.FindString(text); p != "" && !r.isScript {
		rest := splitCommands(text[len(p):])
		first, _, _ := strings.Cut(text[1:], " ")
		if p[0] == '#' && unpromptable.MatchString(text[len(p):]) {
			return nil, false
		}
		if len(rest) > 0 && (p != "#" || !r.unprompted[first]) && commandTable(rest[0].unwrap().name()) != nil {
			return rest, true
		}
	}
	switch {
	case text[0] == '#', text[0] == ';', strings.HasPrefix(text, "//"), text[0] == '*', strings.HasPrefix(text, "::"),
		strings.HasPrefix(strings.TrimPrefix(strings.ToLower(text), "@"), "rem "):
		return nil, false
	}
	return splitCommands(text), true
}

// unpromptable is a command of Windows, where # is no prompt, or a resource of Puppet.
var unpromptable = pattern.New(`(?i)^(?:reg|netsh|(?:set|new|enable|disable)-\w+)(?:\.exe)?\s|^sysctl\s+\{`)

// runner is the name of a function of a script that runs the command behind it. It is in small
// letters, which a sentence does not begin with.
var runner = pattern.New(`^(?:run|exec|execute|safe|try|retry|quiet|silent|do)(?:_\w+)?$`)

// unitSections are sections of systemd's units whose other lines set nothing of the network.
var unitSections = setOf(`Unit Service Install Timer Socket CAN Address DHCP DHCPv4 DHCPv6 IPv6AcceptRA NetDev VLAN Bond
	WireGuard WireGuardPeer RoutingPolicyRule`)

// unitKey is a key of a unit. A script that writes one goes on behind it with lines of its own.
var unitKey = pattern.New(`^[A-Z][A-Za-z]+\s*=`)

// unitCommand is what stands before a command of a systemd unit (systemd.service(5)).
var unitCommand = pattern.New(`^Exec(?:Start|Stop|Reload)(?:Pre|Post)?\s*=\s*[-@:+!]*`)

// command passes a command to its reader.
func (r *reader) command(c, from command) bool {
	if len(c.words) > 1 && c.words[1] == "=" {
		return false // cat = "network" in a table
	}
	if len(c.words) > 2 && runner.MatchString(c.words[0]) && settingCommands.MatchString(c.words[1]+" ") {
		c.words = c.words[1:] // run ethtool -K eth0 gro off
	}
	// $SUDO ip link set eth0 mtu 9000
	if rest := (command{words: c.words[min(1, len(c.words)):]}); len(rest.words) > 1 &&
		strings.HasPrefix(c.words[0], "$") && commandTable(rest.name()) != nil {
		c.words = rest.words
	}
	if f := commandTable(c.name()); f != nil {
		return f(r, c, from)
	}
	return r.shellBehind(c)
}

// shellBehind reads the command of a shell that an unknown program runs: docker exec NAME sh -c
// '…'.
func (r *reader) shellBehind(c command) bool {
	for i := 1; i+2 < len(c.words); i++ {
		inner := command{words: c.words[i:]}
		switch inner.name() {
		case "sh", "bash", "ash", "dash", "busybox":
			if strings.HasPrefix(c.words[i+1], "-") && strings.HasSuffix(c.words[i+1], "c") {
				return r.shell(inner, command{})
			}
		}
	}
	return false
}
