package read

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// conditionEffect returns what the left side of an unmodelled match depends on.
func conditionEffect(left json.RawMessage) ruleset.Effect {
	text := string(left)
	switch {
	case strings.Contains(text, `"numgen"`), strings.Contains(text, `"time"`), strings.Contains(text, `"hour"`),
		strings.Contains(text, `"day"`):
		return ruleset.EffectTime
	case strings.Contains(text, `"fib"`), strings.Contains(text, `"rt"`), strings.Contains(text, `"socket"`):
		return ruleset.EffectRoute
	case strings.Contains(text, `"bytes"`), strings.Contains(text, `"packets"`), strings.Contains(text, `"avgpkt"`),
		strings.Contains(text, `"expiration"`), strings.Contains(text, `"count"`):
		return ruleset.EffectLimit // a property of the connection that each packet changes
	}
	return ruleset.EffectNone
}

// opaque returns a statement that the model does not compute.
func opaque(name string, b json.RawMessage) ruleset.Opaque {
	text, printed := statementText(name, decode(b))
	o := ruleset.Opaque{Text: text, Effect: ruleset.EffectOther, Unprintable: !printed}
	// A lookup in a map that lacks the key ends the rule.
	o.Conditional = bytes.Contains(b, []byte(`"map"`))
	switch name {
	case "limit", "quota", "ct count":
		o.Effect, o.Conditional = ruleset.EffectLimit, true
	case "mangle", "secmark", "ct timeout", "ct helper", "ct expectation", "reset", "last":
		o.Effect = ruleset.EffectMark
	case "log":
		o.Effect = ruleset.EffectLog
	case "masquerade", "snat", "dnat", "redirect", "tproxy":
		o.Effect, o.Ends = ruleset.EffectNAT, true
	case "queue":
		o.Effect, o.Ends = ruleset.EffectQueue, true
	case "notrack", "flow", "synproxy":
		o.Effect = ruleset.EffectTrack
	case "set", "map", "meter":
		o.Effect = ruleset.EffectDynamic
		// Within a meter or an update stands a limit that may end the rule.
		o.Conditional = o.Conditional || bytes.Contains(b, []byte(`"limit"`)) || bytes.Contains(b, []byte(`"quota"`)) ||
			bytes.Contains(b, []byte(`"ct count"`))
	case "fwd":
		o.Ends = true
	case "xt":
		o.Conditional = true
		m, _ := decode(b).(map[string]any)
		o.Ends = endingExtension(fmt.Sprint(m["type"]), fmt.Sprint(m["name"]))
	}
	return o
}

// endingExtension reports whether an extension of iptables that nft shows ends the chain. Its name
// may have options behind it.
func endingExtension(kind, text string) bool {
	name, _, _ := strings.Cut(text, " ")
	name = strings.ToUpper(name)
	_, ends := targetOf(name)
	return kind == "target" && (ends || name == "REJECT")
}

// statementText writes a statement of libnftables-json(5) as nft would; false if it cannot.
func statementText(name string, v any) (string, bool) {
	m, _ := v.(map[string]any)
	switch name {
	case "log":
		return withOptions("log", m, "prefix", "group", "snaplen", "queue-threshold", "level", "flags")
	case "limit":
		if s, ok := v.(string); ok {
			return "limit name " + quoted(s), true
		}
		s, ok := limitText(m)
		return "limit " + s, ok
	case "quota":
		if s, ok := v.(string); ok {
			return "quota name " + quoted(s), true
		}
		return "quota " + quotaText(m), m != nil
	case "mangle":
		key, okKey := expression(m["key"])
		value, okValue := expression(m["value"])
		return key + " set " + value, okKey && okValue
	case "masquerade", "snat", "dnat", "redirect":
		return natText(name, m)
	case "notrack":
		return "notrack", true
	case "flow":
		table, ok := m["flowtable"].(string)
		return "flow add " + table, ok
	case "ct helper", "ct timeout", "ct expectation":
		s, ok := v.(string)
		return name + " set " + quoted(s), ok
	case "ct count":
		over := ""
		if inv, _ := m["inv"].(bool); inv {
			over = "over "
		}
		return fmt.Sprintf("ct count %s%v", over, m["val"]), m["val"] != nil
	case "set":
		return updateText(m)
	case "queue":
		return queueText(m)
	case "fwd", "dup":
		dev, ok := expression(m["dev"])
		return name + " to " + dev, ok && name == "fwd" && len(m) == 1
	case "xt":
		return strings.TrimSpace(fmt.Sprintf("xt %v %v", or(m["type"]), or(m["name"]))), false
	}
	b, err := json.Marshal(v)
	if err != nil {
		return name, false
	}
	return name + " " + string(b), false
}

func or(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, "'") + `"` }

func withOptions(s string, m map[string]any, names ...string) (string, bool) {
	known := 0
	for _, n := range names {
		v, ok := m[n]
		if !ok {
			continue
		}
		known++
		switch v := v.(type) {
		case string:
			if n == "prefix" {
				s += " prefix " + quoted(v)
			} else {
				s += " " + n + " " + v
			}
		case []any:
			s += " " + n + " " + join(v, ",")
		default:
			s += fmt.Sprintf(" %s %v", n, v)
		}
	}
	return s, known == len(m)
}

func join(list []any, by string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, by)
}

func limitText(m map[string]any) (string, bool) {
	s := "rate "
	if inv, _ := m["inv"].(bool); inv {
		s += "over "
	}
	s += fmt.Sprint(m["rate"])
	if u, ok := m["rate_unit"].(string); ok && u != "packets" {
		s += " " + u
	}
	s += fmt.Sprintf("/%v", m["per"])
	if burst, ok := m["burst"]; ok && fmt.Sprint(burst) != "0" {
		unit, _ := m["burst_unit"].(string)
		if unit == "" {
			unit = "packets"
		}
		s += fmt.Sprintf(" burst %v %s", burst, unit)
	}
	return s, m["rate"] != nil && m["per"] != nil
}

func quotaText(m map[string]any) string {
	s := ""
	if inv, _ := m["inv"].(bool); inv {
		s = "over "
	}
	s += fmt.Sprintf("%v %v", m["val"], m["val_unit"])
	if used, ok := m["used"]; ok && fmt.Sprint(used) != "0" {
		s += fmt.Sprintf(" used %v %v", used, m["used_unit"])
	}
	return s
}

func natText(name string, m map[string]any) (string, bool) {
	s, good := name, true
	if f, ok := m["family"].(string); ok {
		s += " " + f
	}
	addr, hasAddr := m["addr"]
	port, hasPort := m["port"]
	if hasAddr || hasPort {
		s += " to "
	}
	if hasAddr {
		text, ok := expression(addr)
		good = good && ok
		if _, plain := addr.(string); plain && hasPort && strings.Contains(text, ":") {
			text = "[" + text + "]"
		}
		s += text
	}
	if hasPort {
		text, ok := expression(port)
		good = good && ok
		s += ":" + text
	}
	switch f := m["flags"].(type) {
	case string:
		s += " " + f
	case []any:
		s += " " + join(f, ",")
	}
	if _, ok := m["type_flags"]; ok {
		good = false
	}
	return s, good
}

func updateText(m map[string]any) (string, bool) {
	op, okOp := m["op"].(string)
	set, okSet := m["set"].(string)
	elem, okElem := expression(m["elem"])
	good := okOp && okSet && okElem
	stmts, _ := m["stmt"].([]any)
	for _, one := range stmts {
		o, _ := one.(map[string]any)
		for n, v := range o {
			if n == "counter" {
				elem += " counter"
				continue
			}
			text, ok := statementText(n, v)
			elem, good = elem+" "+text, good && ok
		}
	}
	return fmt.Sprintf("%s %s { %s }", op, set, elem), good
}

func queueText(m map[string]any) (string, bool) {
	s, good := "queue", true
	if f, ok := m["flags"]; ok {
		switch f := f.(type) {
		case string:
			s += " flags " + f
		case []any:
			s += " flags " + join(f, ",")
		}
	}
	if n, ok := m["num"]; ok {
		text, okText := expression(n)
		s, good = s+" to "+text, okText
	}
	return s, good
}

// expression writes an expression of libnftables-json(5) as nft would; false if it cannot.
func expression(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		// Words of nft stand alone; anything else is a name between quotes.
		if strings.HasPrefix(v, "@") || plain(v) {
			return v, true
		}
		return quoted(v), true
	case json.Number:
		return v.String(), true
	case float64:
		return fmt.Sprint(v), true
	case bool:
		if v {
			return "exists", true
		}
		return "missing", true
	case []any:
		return list(v, ",")
	case map[string]any:
		return object(v)
	}
	return "", false
}

// plain reports whether a word needs no quotes.
func plain(s string) bool {
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("_-.:/", c):
		default:
			return false
		}
	}
	return s != ""
}

func list(l []any, by string) (string, bool) {
	parts := make([]string, len(l))
	for i, v := range l {
		var ok bool
		if parts[i], ok = expression(v); !ok {
			return strings.Join(parts, by), false
		}
	}
	return strings.Join(parts, by), true
}

func object(m map[string]any) (string, bool) {
	for _, op := range []string{"&", "|", "^", "<<", ">>"} {
		if sides, ok := m[op].([]any); ok {
			// A mask of several bits is printed as their sum.
			for i, s := range sides {
				if bits, ok := s.([]any); ok {
					text, ok := list(bits, " | ")
					if !ok {
						return text, false
					}
					sides[i] = json.Number("(" + text + ")")
				}
			}
			return list(sides, " "+op+" ")
		}
	}
	if c, ok := m["concat"].([]any); ok {
		return list(c, " . ")
	}
	if c, ok := m["range"].([]any); ok {
		return list(c, "-")
	}
	if s, ok := m["set"]; ok {
		l, many := s.([]any)
		if !many {
			l = []any{s}
		}
		for i, e := range l {
			if pair, ok := e.([]any); ok && len(pair) == 2 {
				text, ok := list(pair, " : ")
				if !ok {
					return text, false
				}
				l[i] = json.Number(text) // already text: written as it is
			}
		}
		text, ok := list(l, ", ")
		return "{ " + text + " }", ok
	}
	child := func(name string) map[string]any { c, _ := m[name].(map[string]any); return c }
	word := func(c map[string]any, name string) string { s, _ := c[name].(string); return s }
	switch {
	case child("payload") != nil:
		c := child("payload")
		if p, f := word(c, "protocol"), word(c, "field"); p != "" && f != "" {
			return p + " " + f, true
		}
		return fmt.Sprintf("@%v,%v,%v", c["base"], c["offset"], c["len"]), c["base"] != nil && c["len"] != nil
	case child("meta") != nil:
		switch k := word(child("meta"), "key"); k {
		case "iif", "iifname", "oif", "oifname", "mark", "l4proto", "nfproto":
			return "meta " + k, true
		default:
			return "meta " + k, k != ""
		}
	case child("ct") != nil:
		c := child("ct")
		parts := []string{"ct"}
		for _, n := range []string{"dir", "family", "key"} {
			if w := word(c, n); w != "" {
				parts = append(parts, w)
			}
		}
		return strings.Join(parts, " "), true
	case child("prefix") != nil:
		c := child("prefix")
		return fmt.Sprintf("%v/%v", c["addr"], c["len"]), c["addr"] != nil && c["len"] != nil
	case child("fib") != nil:
		c := child("fib")
		flags := word(c, "flags")
		if l, ok := c["flags"].([]any); ok {
			flags = join(l, " . ")
		}
		return "fib " + flags + " " + word(c, "result"), flags != ""
	case child("rt") != nil:
		return "rt " + strings.TrimSpace(word(child("rt"), "family")+" "+word(child("rt"), "key")), true
	case child("socket") != nil:
		return "socket " + word(child("socket"), "key"), true
	case child("tcp option") != nil:
		c := child("tcp option")
		return strings.TrimSpace("tcp option " + word(c, "name") + " " + word(c, "field")), word(c, "name") != ""
	case child("exthdr") != nil:
		c := child("exthdr")
		return strings.TrimSpace("exthdr " + word(c, "name") + " " + word(c, "field")), word(c, "name") != ""
	case child("numgen") != nil:
		c := child("numgen")
		s := fmt.Sprintf("numgen %v mod %v", c["mode"], c["mod"])
		if o := fmt.Sprint(or(c["offset"])); o != "" && o != "0" {
			s += " offset " + o
		}
		return s, c["mod"] != nil
	case child("map") != nil:
		c := child("map")
		key, okKey := expression(c["key"])
		data, okData := expression(c["data"])
		return key + " map " + data, okKey && okData
	case child("elem") != nil:
		c := child("elem")
		s, ok := expression(c["val"])
		if t, has := c["timeout"]; has {
			s += fmt.Sprintf(" timeout %vs", t)
		}
		return s, ok
	}
	for _, k := range []string{"accept", "drop", "return", "continue"} {
		if _, ok := m[k]; ok {
			return k, true
		}
	}
	for _, k := range []string{"jump", "goto"} {
		if c := child(k); c != nil {
			return k + " " + word(c, "target"), true
		}
	}
	b, err := json.Marshal(m)
	return string(b), err != nil
}

// objectBody writes what stands inside the braces of a named object; empty if the reader cannot.
func objectBody(kind string, b json.RawMessage) (string, error) {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return "", err
	}
	switch kind {
	case "quota":
		return quotaText(map[string]any{"val": m["bytes"], "val_unit": "bytes", "used": m["used"],
			"used_unit": "bytes", "inv": m["inv"]}), nil
	case "limit":
		if s, ok := limitText(m); ok {
			return s, nil
		}
	case "flowtable":
		devices := m["dev"]
		if one, ok := devices.(string); ok {
			devices = []any{one}
		}
		l, ok := devices.([]any)
		s := fmt.Sprintf("hook %v priority %v", m["hook"], m["prio"])
		if ok && len(l) > 0 {
			names := make([]any, len(l))
			for i, d := range l {
				names[i] = quoted(fmt.Sprint(d))
			}
			s += "\ndevices = { " + join(names, ", ") + " }"
		}
		return s, nil
	case "ct helper":
		s := fmt.Sprintf("type %s protocol %v", quoted(fmt.Sprint(m["type"])), m["protocol"])
		if l3, ok := m["l3proto"]; ok {
			s += fmt.Sprintf("\nl3proto %v", l3)
		}
		return s, nil
	}
	return "", nil
}
