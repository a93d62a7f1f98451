package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Elements of XML whose attributes are a key, a name and a number: preferences of group policy,
// WiX, answer files.
var (
	elementOfName  = pattern.New(`(?i)<[\w:.]+\s[^<>]*\b(?:value)?name\s*=\s*"[^<>]*>`)
	attributeOfXML = pattern.New(`(?i)\b(hive|root|key|keyname|path|name|valuename|value|data|valuedata|action|type)` +
		`\s*=\s*"([^"]*)"`)
)

// tunableOfXML and valueOfXML are the elements of config.xml of pfSense and OPNsense.
var (
	tunableOfXML = pattern.New(`^<tunable>(.+)</`)
	valueOfXML   = pattern.New(`^<value>(.+)</`)
)

// element reads such elements. A key may be that of the element around.
func (r *reader) element(text string) bool {
	if m := tunableOfXML.FindStringSubmatch(text); m != nil {
		r.pending = m[1]
		return true
	}
	if m := valueOfXML.FindStringSubmatch(text); m != nil && r.pending != "" {
		name := r.pending
		r.pending = ""
		return m[1] == "default" || r.sysctl(name, m[1])
	}
	found := false
	if !strings.Contains(text, "<") || !r.windows {
		return false
	}
	for _, e := range elementOfName.FindAllString(text, -1) {
		a := map[string]string{}
		for _, m := range attributeOfXML.FindAllStringSubmatch(e, -1) {
			name := strings.ToLower(m[1])
			switch name {
			case "keyname", "path":
				name = "key"
			case "valuename":
				name = "name"
			case "data", "valuedata":
				name = "value"
			}
			a[name] = m[2]
		}
		value := strings.TrimPrefix(strings.ToLower(a["value"]), "#") // of WiX
		if a["hive"] != "" && len(value) == 8 && strings.EqualFold(a["type"], "REG_DWORD") {
			value = "0x" + value // of group policy
		}
		name := registryNamed(a["name"])
		if keyInside.MatchString(a["key"] + `\`) {
			name = "registry:" + registryPathOf(inMachine(a["key"])) + `\` + a["name"]
		}
		if name != "" && literalText.MatchString(value) && !strings.EqualFold(a["action"], "d") {
			r.add(Windows, name, registryWord(value))
			found = true
		}
	}
	return found
}
