package advice

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// namePattern matches the dotted name of a sysctl within a line; a star or an interface with a
// slash may be part of it.
const namePattern = `[a-z][a-z0-9_]*(?:\.[\w*/-]+)+`

// namedValue is NAME VALUE, NAME: VALUE, NAME => VALUE or NAME = VALUE with quotes, commas and
// semicolons around: lines of a page, YAML, JSON, Nix, Puppet and Ruby.
var namedValue = pattern.New(
	`^["'` + "`" + `]?(` + namePattern + `)["'` + "`" + `]?\s*(=>|\?=|=|:|\s)\s*(.+?)\s*[;,]?$`)

// loneName is a line that holds the name alone: the head of a block in YAML or Puppet, a cell of a
// table.
var loneName = pattern.New(`^(?:-\s*)?(?:(?:name|namespace|key|title)\s*(?:=>|:|=)\s*)?["']?(` + namePattern +
	`)["']?\s*[:,]?(?:\s*do)?$`)

// slashedPair is a name with slashes and its value in a table of a program.
var slashedPair = pattern.New(`^["']((?:net|vm|kernel|fs)(?:/[\w*.-]+)+)["']\s*(?::|=>)\s*["']?(.+?)["']?,?$`)

// blockHead is the head of a resource that names its sysctl: sysctl { 'NAME':, sysctl_param 'NAME'
// do, sysctl::value { "NAME": value => 1 }.
var blockHead = pattern.New(`^[\w:]*sysctl[\w:]*\s*\{?\s*["'](` + namePattern + `)["']\s*(?::|do\b)?\s*(.*)$`)

// insertedName is an interface of which a variable is a part, in a name of a block.
var insertedName = pattern.New(`(["']net\.ipv[46]\.(?:conf|neigh)\.[\w-]*)[#$]\{[^{}\s]+\}(\.\w+["'])`)

// expected is the head of what a test of Puppet expects: contain_sysctl('NAME').with({.
var expected = pattern.New(`\bcontain_sysctl\w*\(["'](` + namePattern + `)["']\)\.with\(\{?$`)

// valueLine is the value that belongs to a name above it.
var valueLine = pattern.New(`^(?:-\s*)?["']?value["']?\s*(=>|:|=|\s)\s*(.+?)\s*,?\s*\}?$`)

// valueWithin is the value among the other parameters of a resource on one line.
var valueWithin = pattern.New(`\bvalue["']?\s*(?:=>|:|=|\s)\s*("[^"]*"|'[^']*'|[^\s,;}]+)`)

// inlineBlock is a name and a value in one mapping: { name: 'N', value: 'V' }, name=N value=V.
var inlineBlock = pattern.New(`\b(?:name|namespace|key)["']?\s*[:=]\s*["']?(` + namePattern +
	`)["']?[\s,]+.*?\bvalue["']?\s*[:=]\s*("[^"]*"|'[^']*'|[^,}"']+?)\s*(?:\s\w+[:=].*|[,}` + "`|" + `].*)?$`)

// attribute is a nested key of Chef: default['sysctl']['params']['net']['core']['rmem_max'] = 1.
var (
	attribute    = pattern.New(`^[\w.]*((?:\[:?["']?[\w.-]+["']?\])+)\s*=\s*(.+?)$`)
	attributeKey = pattern.New(`\[:?["']?([\w.-]+)["']?\]`)
)

// numbers is a value that a sysctl takes, or a word of one that takes words.
var numbers = pattern.New(`^-?(?:0x[0-9a-fA-F]+|\d+)(?:[\s,]+-?(?:0x[0-9a-fA-F]+|\d+))*$`)

// wordValued are the sysctls whose value is a word.
var wordValued = pattern.New(`congestion_control|default_qdisc|cc\.algorithm|congctl\.selected|` +
	`functions_default`)

// treeOfNix is the path in front of a name in NixOS: boot.kernel.sysctl."NAME" = VALUE;.
var treeOfNix = pattern.New(`^(?:[\w.]+\.)?sysctl\.(["'])`)

// setOfNix is a set of NixOS on one line: boot.kernel.sysctl = { "NAME" = VALUE; };.
var setOfNix = pattern.New(`^(?:[\w.]+\.)?sysctl\s*=\s*\{\s*(["'].+?)\s*\};?$`)

// pair reads one name and one value that stand together in any of these forms.
func (r *reader) pair(text string) bool {
	if m := setOfNix.FindStringSubmatch(text); m != nil {
		read, missed := false, false
		for part := range strings.SplitSeq(strings.TrimSuffix(m[1], ";"), ";") {
			if r.pair(strings.TrimSpace(part)) {
				read = true
			} else {
				missed = true
			}
		}
		if read && missed {
			r.unread()
		}
		return read
	}
	text = treeOfNix.ReplaceAllString(text, "$1")
	if m := inlineBlock.FindStringSubmatch(text); m != nil {
		return r.block(m[1], m[2])
	}
	if m := slashedPair.FindStringSubmatch(text); m != nil {
		return r.block(m[1], m[2])
	}
	if m := helper.FindStringSubmatch(text); m != nil && r.sysctl(m[1], plainValue(m[2])) {
		return true
	}
	if m := expected.FindStringSubmatch(text); m != nil {
		r.pending = m[1]
		return true
	}
	if m := blockHead.FindStringSubmatch(insertedName.ReplaceAllString(text, "$1*$2")); m != nil {
		r.pending = m[1]
		if v := valueWithin.FindStringSubmatch(m[2]); v != nil {
			r.pending = ""
			return r.block(m[1], v[1])
		}
		return true
	}
	if m := attribute.FindStringSubmatch(text); m != nil {
		return r.attribute(m[1], m[2])
	}
	if m := namedValue.FindStringSubmatch(text); m != nil {
		// 'NAME=0'], more: the quote that the name opens closes the value.
		if quote := text[0]; strings.IndexByte("\"'`", quote) >= 0 && text[1+len(m[1])] != quote {
			m[3], _, _ = strings.Cut(m[3], string(quote))
		}
		return r.namedValue(m[1], m[2], m[3])
	}
	return false
}

// namedValue takes a value that its sign makes one: any text behind an equals sign, and otherwise
// only what a sysctl takes, because a name and a colon also begin explanations.
func (r *reader) namedValue(name, sign, value string) bool {
	if m := valueLine.FindStringSubmatch(value); m != nil && sign == ":" { // of a block of Puppet
		value = m[2]
	}
	value = plainValue(value)
	if sign == ":" || sign == "=>" || strings.HasSuffix(r.line.text, ";") { // of Nix
		value = boolean(value)
	}
	switch {
	case sign == "=" || sign == "?=":
	case numbers.MatchString(value) || isVariable(value) && len(strings.Fields(value)) == 1:
	case wordValued.MatchString(name) && len(strings.Fields(value)) == 1:
	default:
		return false
	}
	return r.sysctl(name, strings.ReplaceAll(value, ",", " "))
}

// block adds a name and a value out of a mapping of YAML or Ruby.
func (r *reader) block(name, value string) bool {
	value = plainValue(value)
	return r.sysctl(name, strings.ReplaceAll(boolean(value), ",", " "))
}

// attribute joins the keys of a nested hash, and drops those before the tree of the kernel.
func (r *reader) attribute(keys, value string) bool {
	var parts []string
	for _, m := range attributeKey.FindAllStringSubmatch(keys, -1) {
		parts = append(parts, m[1])
	}
	for i := range parts {
		name := strings.Join(parts[i:], ".")
		if _, ok := sysctlOS(name); ok && strings.Contains(name, ".") {
			return r.block(name, value)
		}
	}
	// The hash of a recipe's own names: default['sysctl']['rmem_max'], or the table of a script for
	// files of /proc/sys/net: ["rmem_max"]=26214400.
	if slices.Contains(parts, "sysctl") || len(parts) == 1 && numbers.MatchString(plainValue(value)) {
		if name := netNameOf(parts[len(parts)-1]); name != "" {
			return r.block(name, value)
		}
	}
	return false
}

// spread reads names and values on lines of their own: the name stays pending until its value
// follows. Lines between the two, such as sysctl.present:, set nothing.
func (r *reader) spread(text string) bool {
	if m := loneName.FindStringSubmatch(text); m != nil {
		if _, ok := sysctlOS(m[1]); ok {
			r.pending = m[1]
			return true
		}
	}
	if r.pending == "" {
		return false
	}
	if r.pendingValue(text) {
		return true
	}
	// A cell of a table below the cell of the name.
	if value := plainValue(text); numbers.MatchString(value) {
		name := r.pending
		r.pending = ""
		return r.sysctl(name, value)
	}
	return false
}

// pendingValue takes the value of the pending name; ensure => absent sets none.
func (r *reader) pendingValue(text string) bool {
	m := valueLine.FindStringSubmatch(text)
	if m == nil || r.pending == "" {
		return false
	}
	name := r.pending
	r.pending = ""
	// A sentence may begin with the word as well.
	if len(strings.Fields(m[2])) > 1 && strings.TrimSpace(m[1]) == "" && !numbers.MatchString(plainValue(m[2])) {
		return false
	}
	return r.block(name, m[2])
}

// plainValue strips quotes, brackets of a list and the priority of Nix from a value, and the
// default in parentheses that pages write behind it.
func plainValue(value string) string {
	value = strings.TrimSpace(value)
	if at := strings.Index(value, " #"); at >= 0 {
		value = value[:at]
	}
	value = nixPriority.ReplaceAllString(value, "")
	if at := strings.Index(value, "(default"); at > 0 {
		value = value[:at]
	}
	value = strings.Trim(strings.TrimSpace(value), "\"'`;,")
	if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") {
		value = value[1 : len(value)-1]
	}
	if inThousands.MatchString(value) {
		value = strings.ReplaceAll(value, "_", "")
	}
	return strings.TrimSpace(strings.ReplaceAll(value, `\t`, " "))
}

// inThousands is a number as programs write it: 2_147_483_647.
var inThousands = pattern.New(`^\d{1,3}(?:_\d{3})+$`)

// nixPriority is the function of Nix that ranks a value among others.
var nixPriority = pattern.New(`^(?:lib\.)?mk(?:Default|Force|Override\s+\d+)\s+`)

// boolean writes the truth values of YAML and Ruby as the kernel has them.
func boolean(value string) string {
	switch strings.ToLower(value) {
	case "true", "yes":
		return "1"
	case "false", "no":
		return "0"
	}
	return value
}

// bullet is what stands before an item of a list, and the mark of a quotation.
var bullet = pattern.New(`^(?:[-*+•→]|>{1,3}|\d+[.)])\s+`)

// inlineCode is text between backquotes, one or three.
var inlineCode = pattern.New("`+([^`]+)`+")

// embedded is a setting somewhere in a line of a program that is not read: sed, docker run, a list
// of lines for a file.
var embedded = pattern.New(`(?:^|[\s"'/=,({|])(` + namePattern +
	`)\s?=\s?("[^"]*"|'[^']*'|-?\d+(?:[ \t]+\d+)*|[a-z]\w*|\$\w+|\$?\{[^}]*\}+)`)

// within reads settings that stand inside other text: between backquotes, or NAME=VALUE anywhere.
func (r *reader) within(text string) bool {
	found := false
	text = moreLines.ReplaceAllString(text, " $1")
	for _, m := range inlineCode.FindAllStringSubmatch(text, -1) {
		code := strings.TrimSpace(m[1])
		found = r.commands(splitCommands(code)) || r.assignment(code) || r.pair(code) || r.lastPart(code) ||
			r.bare(code) || found
	}
	if found || r.quoted(text) {
		return true
	}
	all := embedded.FindAllStringSubmatch(text, -1)
	for i, m := range all {
		if i+1 < len(all) && all[i+1][1] == m[1] && changed.MatchString(text) {
			continue // change A=1 to A=2
		}
		found = r.sysctl(m[1], plainValue(m[2])) || found
	}
	if m := helper.FindStringSubmatch(text); m != nil && !found {
		found = r.sysctl(m[1], plainValue(m[2]))
	}
	return found || r.several(text)
}

// lastPart reads the last part of a name and its value, in a page: tcp_sack: 0. It is read if one
// sysctl alone ends so.
func (r *reader) lastPart(code string) bool {
	m := lastPartLine.FindStringSubmatch(code)
	if m == nil {
		return false
	}
	tracking := "net.netfilter." + m[1]
	if strings.HasPrefix(m[1], "nf_conntrack_") && slices.Contains(sysctlsOfLinux().trees[tree(tracking)], tracking) {
		return r.sysctl(tracking, m[2])
	}
	name := netNameOf(m[1])
	return name != "" && r.sysctl(name, m[2])
}

var lastPartLine = pattern.New(`^([a-z]+_[a-z0-9_]+)\s*[:=]\s*(\d+)$`)

// changed is a sentence that gives the value of before as well.
var changed = pattern.New(`(?i)\b(?:change|from)\b.*\sto\s`)

// helper is a function or a script of the text's author that takes a name and a value:
// set_sysctl NAME VALUE. It is one word, because a sentence has several before the name.
var helper = pattern.New(`^[\w./-]+\s+["']?(` + namePattern + `)["']?\s+("[^"]*"|'[^']*'|-?\d+)` +
	`(?:\s+(?:"[^"]*"|'[^']*'))*\s*(?:#.*)?$`)

// mentioned is the name of a sysctl and, anywhere behind it, a number: advice in a form that is not
// read.
var mentioned = pattern.New(`(?:^|[\s"'` + "`" + `(|])(` + namePattern + `)["'` + "`" + `]?[\s:=|(].*\d`)

// taskTitle is the name of a task of Ansible, which is a sentence.
var taskTitle = pattern.New(`^(?:-\s+)?name:\s+["']?(?:[A-Z][a-z]+\s|\S+\s+to\s)`)

// goneSince says of a setting that it is no more.
var goneSince = pattern.New(`(?i)\b(?:removed|dropped|deprecated|obsolete)\b.*\bkernel\b`)

// mentions reports whether a line gives a value for a setting in words.
func mentions(text string) bool {
	if taskTitle.MatchString(text) || goneSince.MatchString(text) {
		return false
	}
	m := mentioned.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	_, ok := sysctlOS(m[1])
	return ok
}

// variablePattern are the forms in which scripts, templates and pages leave a value open: $NAME,
// %NAME%, %%i, {{ name }}, <value>, @NAME@, an ellipsis.
var variablePattern = pattern.New(`\$\w|\$[({]|%%?\w+|\{\{|<[\w /-]+>|` +
	`@\w+@|^\.\.\.$|…|^[A-Z]$|^[NX]+$|^\{[\w.*/+ -]*\}`)

// isVariable reports whether a value is left open. A bare word such as bytes is not: the range of
// the setting shows that it is no value.
func isVariable(value string) bool { return variablePattern.MatchString(value) }

// linesInString are the ends of lines of a script within one string.
var linesInString = pattern.New(`(?i)([^\\])(?:\\r)?\\n\s*` +
	`((?:(?:set|new|enable|disable)-\w|netsh|reg add|sysctl|ethtool)\S*\s)`)

// pathOfProgram is a program in quotes of its own, with its directory: "$SYSDIR\netsh.exe" int ….
var pathOfProgram = pattern.New(`(?i)^["']?[\w$%{}:.\\/ ]*[\\/](netsh|reg|powershell)\.exe["']?\s`)

var doubledQuotes = pattern.New(`""([^",\s][^"]*)""`)

// quotedText is a string of another language.
var quotedText = pattern.New(`"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'`)

// settingCommands are the commands that are read out of strings and out of the middle of a line:
// they have no other use than to set something.
var settingCommands = pattern.New(`(?i)^\s*(?:sudo\s+|RUN\s+)?(?:[/$]\S*/)?(?:(?:powershell|pwsh)(?:\.exe)?|` +
	`netsh(?:\.exe)?|reg(?:\.exe)? add|ndd|ipadm|dladm|` +
	`ip\s+link\s+set\s+\S.*\s(?:mtu|txqueuelen)|tc\s+qdisc\s+(?:add|replace|change)|` +
	`sysctl|ethtool|ifconfig\s+\S+\s+(?:mtu|txqueuelen|-?(?:[rt]xcsum|tso|lro))|` +
	`(?:set|new)-itemproperty|(?:set|enable|disable)-(?:net|smb)\w+)\s`)

// writesKernel is a command that writes a file of the kernel, also in a loop.
var writesKernel = pattern.New(`^\s*(?:sudo\s+)?(?:/bin/)?(?:for|echo|printf|sh|bash)\s.*` +
	`(?:>|\btee(?:\s+-a)?)\s*["']?(?:/proc/sys/|/proc/irq/|/sys/|\$\w)`)

// programOf are the arguments of reg add or of netsh, which another function runs.
var programOf = pattern.New(`(?i)^(?:(add)\s+["']?hk|int(?:erface)?\s+\w+\s+set\s)`)

// asksNetsh is a command that only shows something, as a loop of a batch file has it.
var asksNetsh = pattern.New(`(?i)^\s*netsh(?:\.exe)?\s.*\s(?:show|dump)\b`)

// ofShell is the option of cmd.exe before the command that it runs.
var ofShell = pattern.New(`(?i)^/[ck]\s+`)

// withProgram puts the program before arguments that only it has.
func withProgram(arguments string) string {
	arguments = ofShell.ReplaceAllString(arguments, "")
	switch m := programOf.FindStringSubmatch(arguments); {
	case m == nil:
		return arguments
	case m[1] != "":
		return "reg " + arguments
	}
	return "netsh " + arguments
}

// augeasSet is a change of a file by augeas: set NAME VALUE, in quotes.
var augeasSet = pattern.New(`["']set\s+(?:/files/etc/sysctl(?:\.conf|\.d/[\w.-]+)/)?(` + namePattern +
	`)\s+("[^"]*"|'[^']*'|[^\s"']+)\s*["']`)

// pairOfStrings is a name and a value as two strings of a program: ("net.core.rmem_max", "1").
var pairOfStrings = pattern.New(`[({\[]\s*["'](` + namePattern + `)["']\s*,\s*["']([^"']+)["']\s*[)}\]]`)

// registryCall is a function of a script with a key, a name and a number, and perhaps a type among
// them: R "HKLM:\…" "NAME" 1, SetValue(@"HKEY_…", "NAME", 1), R $key "NAME" 1.
var registryCall = pattern.New(`(?i)(?:["']?((?:registry::)?hk(?:lm|cu|u|ey_\w+):?\\[^"',]+?)["']?|` +
	`["']((?:system|software)\\[^"',]+)["']|(\$[\w.]+))[\s,]+` +
	`["']?(\*?[a-z][\w*]*(?: [\w*]+)*)["']?[\s,]+(?:["']?(?:REG_)?(?:dword|qword|sz|string|binary)["']?[\s,]+)?` +
	`["']?(0x[0-9a-f]+|[0-9a-f]{8}|-1|\d+)\b`)

var typeBehindName = pattern.New(`(?i)\s+REG_(?:DWORD|QWORD|SZ)$`)

// setsByName is a function of a program that sets a value by its name, in a key that it has opened
// or that a constant names.
var setsByName = pattern.New(`(?i)set\w*(?:value|dword|string|reg\w*)(?:ex)?\(\s*(?:[\w.&]+\s*,\s*){0,3}` +
	`["'](\*?[a-z]\w+)["']\s*,\s*(?:0\s*,\s*(?:\w+\.)*REG_\w+\s*,\s*)?(?:unchecked\()?(?:\(\w+\))?&?` +
	`["']?(0x[0-9a-f]+|-1|\d+)\b(\s*,\s*(?:\w+\.)*REG_\w+\s*,)?`)

// readsRegistry is a line that asks for a value or takes one away.
var readsRegistry = pattern.New(`(?i)\b(?:query|delete|get-\w+|test-path|remove-\w+)\b|` +
	`(?:check|read|get|is|delete|remove|detect|restore)_?(?:reg\w*|dword|value\w*)\s*\(`)

// asksFor stands before the name of a command that is looked for and not run.
var asksFor = pattern.New(`(?i)get-(?:command|help)\s+$`)

// cmdletWithin is a cmdlet or a command of netsh or reg anywhere in a line, up to its end.
var cmdletWithin = pattern.New(`(?i)\b(?:(?:set|enabled?|disabled?)-net(?:adap|tcp|udp|offload|ip)\w+|` +
	`(?:set|new)-itemproperty)\b[^|;}]*|` +
	`\b(?:netsh(?:\.exe)?\s+int\w*\s+\w+\s+set\s|reg(?:\.exe)?\s+add\s+["']?(?:\\|hk))` +
	`(?:"[^"]*"|'[^']*'|[^|;&}()"'` + "`" + `])*`)

// powerOfNIC sets a property of what Get-NetAdapterPowerManagement returns.
var powerOfNIC = pattern.New(`(?i)^\$\w+\.(allowcomputertoturnoffdevice|selectivesuspend|deviceSleepondisconnect|` +
	`wakeonmagicpacket|wakeonpattern|arpoffload|nsoffload)\s*=\s*["']?([$\w]+)`)

// afterDo is what a loop of a batch file runs.
var afterDo = pattern.New(`(?i)\)\s*do\s+\(?\s*(\S.*)$`)

// setRegistry is a function of a script with the parameters of Set-ItemProperty, or with a path, a
// name and -Dec or -Hex.
var setRegistry = pattern.New(`(?i)^\s*[\w-]+\s+(?:-(?:path|key)\s+` + registryPath +
	`.*\s-name\s.*\s-(?:value|dword)|` + registryPath + `.*\s["']?\w+["']?\s+-(?:dec|hex|dword))\s`)

// registryPath begins a path of the registry, or a variable that has one.
const registryPath = `["']?(?:(?:registry::)?hk\w+:?\\|\$\w)`

// registryTriple is a name, a type and a value in the call of a script's own function: call :reg
// "%KEY%" TcpTimedWaitDelay REG_DWORD 30.
var registryTriple = pattern.New(
	`([A-Za-z]\w+)["']?[\s,]+(?:0[\s,]+)?["']?(?:winreg\.|_winreg\.)?REG_(?:DWORD|SZ)["']?` +
		`[\s,]+["']?(0x[0-9a-fA-F]+|\d+)\b`)

// nicKeyword is a keyword of a NIC and its value in a table of PowerShell or another language; the
// star marks the names that Microsoft has standardised.
var nicKeyword = pattern.New(`["'](\*[A-Za-z]\w+)["']\s*[=:,]\s*["']?(\w+)["']?`)

// keywordParameter are the parameters of Set-NetAdapterAdvancedProperty, or of a function with a
// list of keywords.
var keywordParameter = pattern.New(`(?i)-registrykeywords?\s+@?\(?\s*["']([^"'$]+)["'].*?-registryvalue\s+["']?(\w+)`)

// calledByName is a function of a batch file with a name and a number: call :NICSetting "NAME" "0".
var calledByName = pattern.New(`(?i)^call\s+:\w+\s+"?([a-z]\w+)"?\s+"?(0x[0-9a-f]+|\d+)"?$`)

// quoted reads the commands in the strings of a program: os.system("netsh …"), exec('ndd …'), a
// list of commands, and cmdlets in a pipeline.
func (r *reader) quoted(text string) bool {
	found, outer := false, r.quoting
	r.quoting = true
	defer func() { r.quoting = outer }()
	if strings.Contains(text, `@"`) { // a verbatim string of C#, whose quotes are doubled
		text = doubledQuotes.ReplaceAllString(text, "'$1'")
	}
	all := quotedText.FindAllStringSubmatch(text, -1)
	if strings.Contains(text, `=\"`) { // a line that another program writes: NAME=\"VALUE\"
		all = append(all, quotedText.FindAllStringSubmatch(strings.ReplaceAll(text, `\"`, `"`), -1)...)
	}
	for _, m := range all {
		m[1] = linesInString.ReplaceAllString(m[1], "$1; $2")
		inner := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, "'").Replace(m[1] + m[2])
		inner = strings.TrimSuffix(inner, `\n`) // printf
		inner = pathOfProgram.ReplaceAllString(inner, "$1 ")
		inner = withProgram(inner)
		found = r.moduleOptions(inner) || found
		if holdsCommand(inner) {
			inner = r.script.inner(inner)
			found = r.commands(splitCommands(inner)) && !asksNetsh.MatchString(inner) || found
		}
	}
	for _, m := range augeasSet.FindAllStringSubmatch(text, -1) {
		found = r.sysctl(m[1], plainValue(m[2])) || found
	}
	for _, m := range argumentList.FindAllString(text, -1) {
		words := wordsOf(m)
		if settingCommands.MatchString(words+" ") && !found {
			found = r.commands(splitCommands(words)) || found
		}
	}
	for _, m := range pairOfStrings.FindAllStringSubmatch(text, -1) {
		found = !found && numbers.MatchString(m[2]) && r.sysctl(m[1], m[2]) || found
	}
	if m := pairWithCall.FindStringSubmatch(text); m != nil && !found {
		found = r.sysctl(m[1], "$"+strings.ReplaceAll(m[2], ".", "_"))
	}
	if m := modulesToLoad.FindStringSubmatch(text); m != nil {
		for _, one := range quotedText.FindAllStringSubmatch(m[1], -1) {
			found = r.moduleOptions("options "+one[1]+one[2]) || found
		}
	}
	if m := afterDo.FindStringSubmatch(text); m != nil && !found && settingCommands.MatchString(m[1]) {
		found = r.commands(splitCommands(m[1])) || found
	}
	if m := registryCall.FindStringSubmatch(text); m != nil && !found && !readsRegistry.MatchString(text) &&
		!strings.Contains(text, m[1]+" "+m[4]+`"`) { // the name of the value is in the key, and has blanks
		m[4] = typeBehindName.ReplaceAllString(m[4], "") // NAME REG_DWORD 1
		known := registryNamed(m[4]) != ""
		switch {
		case m[3] == "":
			r.add(Windows, "registry:"+registryPathOf(inMachine(m[1]+m[2]))+`\`+m[4], registryWord(m[5]))
		case known:
			r.add(Windows, "registry:"+m[3]+`\`+m[4], registryWord(m[5]))
		}
		found = m[3] == "" || known
	}
	if m := setsByName.FindStringSubmatch(text); m != nil && !found && m[3] == "" { // a reserved zero is no data
		name := registryNamed(m[1])
		if strings.HasPrefix(m[1], "*") {
			name = "registry:" + nicClass + `\` + m[1]
		}
		if found = name != ""; found {
			r.add(Windows, name, registryWord(m[2]))
		}
	}
	if !found {
		for _, at := range cmdletWithin.FindAllStringIndex(text, -1) {
			if !asksFor.MatchString(text[:at[0]]) {
				cmdlet := strings.TrimSuffix(strings.TrimRight(text[at[0]:at[1]], `"')`), `\n`)
				found = r.commands(splitCommands(cmdlet)) || found
			}
		}
	}
	for _, m := range powerOfNIC.FindAllStringSubmatch(text, -1) {
		r.add(Windows, "adapter:*/powermanagement."+strings.ToLower(m[1]), truth.Replace(m[2]))
		found = true
	}
	if !found && setRegistry.MatchString(text) {
		for _, c := range splitCommands(text) {
			r.itemProperty(c.words[1:])
			found = true
		}
	}
	for _, m := range call.FindAllStringSubmatch(text, -1) {
		found = (numbers.MatchString(m[2]) || wordValued.MatchString(m[1])) && r.sysctl(m[1], m[2]) || found
	}
	for _, m := range registryTriple.FindAllStringSubmatch(text, -1) {
		if name := registryNamed(m[1]); name != "" && !found {
			r.add(Windows, name, number(m[2]))
			found = true
		}
	}
	if found {
		return true
	}
	for _, m := range nicKeyword.FindAllStringSubmatch(text, -1) {
		r.add(Windows, "adapter:*/"+m[1], m[2])
		found = true
	}
	if m := keywordParameter.FindStringSubmatch(text); m != nil && !found {
		r.add(Windows, "adapter:*/"+m[1], m[2])
		found = true
	}
	if m := calledByName.FindStringSubmatch(text); m != nil && !found && len(m[1]) > 7 {
		if name := registryNamed(m[1]); name != "" {
			r.add(Windows, name, number(m[2]))
			found = true
		}
	}
	return found
}

// call is a function of a program that sets a sysctl: os.sysctl("net.inet.tcp.tso", 1).
var call = pattern.New(`(?i)sysctl\w*\s?\(\s*(?:\w[\w.]*(?:\(\w*\))?\s*,\s*)?["']\.?(` + namePattern +
	`)["']\s*,\s*["']?(-?\w+(?:[ \t]+\d+)*)["']?\s*[,)]`)

// quotedSetting is a setting that is one word of a list: "net.core.rmem_max=16777216".
var quotedSetting = pattern.New(`["'](` + namePattern + `\s*=\s*[^"']+)["']`)

// list reads several settings of one line, each in its quotes, as a loop of a shell has them.
func (r *reader) list(text string) bool {
	all := quotedSetting.FindAllStringSubmatch(text, -1)
	if len(all) < 2 {
		return false
	}
	found := false
	for _, m := range all {
		found = r.assignment(m[1]) || found
	}
	return found
}
