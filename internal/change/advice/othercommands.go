package advice

import "strings"

// ndd reads `ndd -set /dev/tcp PARAMETER VALUE` of Solaris; -get sets nothing. HP-UX has a program
// of the same name and form, with other parameters; parameters without a fact here stay unknown.
func (r *reader) ndd(c, _ command) bool {
	// The driver is part of the name: tcp_max_buf of /dev/tcp and of another module are two
	// parameters.
	w := c.words
	if len(w) >= 5 && w[1] == "-set" {
		r.add(Solaris, "ndd:"+strings.TrimPrefix(w[2], "/dev/")+"/"+w[3], w[4])
	}
	return true
}

// ipadm reads `ipadm set-prop -p NAME=VALUE PROTOCOL` and `ipadm set-ifprop -p mtu=… -m ipv4
// INTERFACE`.
func (r *reader) ipadm(c, _ command) bool {
	if len(c.words) < 2 {
		return true
	}
	// The last word is the protocol or the interface that the property belongs to; -t (until
	// reboot) makes no other setting of it.
	last := c.words[len(c.words)-1]
	switch c.words[1] {
	case "set-prop":
		r.properties(c, func(name, value string) { r.add(Solaris, "ipadm:"+last+"/"+name, value) })
	case "set-ifprop":
		r.properties(c, func(name, value string) { r.add(Solaris, "ipadm:"+last+"/"+name, value) })
	}
	return true
}

// dladm reads `dladm set-linkprop -p NAME=VALUE LINK`. It is for links what ipadm is for protocols:
// the MTU and the flow control of a NIC have been there since Solaris 11 and OpenSolaris 2009
// (dladm(8)).
func (r *reader) dladm(c, _ command) bool {
	if len(c.words) > 2 && c.words[1] == "set-linkprop" {
		last := c.words[len(c.words)-1]
		r.properties(c, func(name, value string) { r.add(Solaris, "dladm:"+last+"/"+name, value) })
	}
	return true
}

// properties returns the NAME=VALUE of every -p. A list behind one -p (a=1,b=2) is one property
// with a comma in its value to us: values of some properties hold commas themselves.
func (r *reader) properties(c command, f func(name, value string)) {
	for i, w := range c.words {
		if (w == "-p" || w == "--prop") && i+1 < len(c.words) {
			if name, value, ok := strings.Cut(c.words[i+1], "="); ok {
				f(name, value)
			}
		}
	}
}

// netsh reads `netsh interface tcp set CONTEXT NAME=VALUE …` and its abbreviations, heuristics
// without a name, and the MTU of `netsh interface ipv4 set subinterface`.
func (r *reader) netsh(c, _ command) bool {
	var words []string
	for _, w := range c.words[1:] {
		words = append(words, strings.ToLower(w))
	}
	if len(words) < 4 || !strings.HasPrefix("interface", words[0]) || words[2] != "set" {
		return true
	}
	// "int tcp", "interface ip" and "int ipv4" are the usual forms. store= selects persistence and
	// template= the kind of network: neither changes the setting.
	context := words[1]
	if context == "ipv4" {
		context = "ip"
	}
	if strings.HasPrefix(words[3], "dynamicport") {
		r.dynamicPorts(context, words[4:])
		return true
	}
	for _, w := range words[4:] {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case ok && name != "store" && name != "template":
			r.add(Windows, "netsh:"+context+"/"+name, value)
		case !ok && words[3] == "heuristics":
			r.add(Windows, "netsh:"+context+"/heuristics", w)
		}
	}
	return true
}

// dynamicPorts reads the range of ports of outgoing connections. The first port and the number of
// ports are one setting: the system refuses each alone, and neither means anything without the
// other.
func (r *reader) dynamicPorts(context string, words []string) {
	var start, count string
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "start", "startport":
			start = value
		case "num", "numberofports":
			count = value
		}
	}
	if start != "" && count != "" {
		r.add(Windows, "netsh:"+context+"/dynamicport", start+" "+count)
	}
}

// reg reads `reg add KEY /v NAME /t TYPE /d DATA`.
func (r *reader) reg(c, _ command) bool {
	w := c.words
	if len(w) < 3 || !strings.EqualFold(w[1], "add") {
		return true
	}
	// The type is ignored: a number is a number in REG_SZ too, a common mistake, and the name
	// decides. Options come in any order and case; a value without data is set to nothing and is
	// skipped.
	name, data := "", ""
	for i := 3; i+1 < len(w); i++ {
		switch strings.ToLower(w[i]) {
		case "/v":
			name = w[i+1]
		case "/d":
			data = w[i+1]
		}
	}
	if name != "" && data != "" {
		r.add(Windows, "registry:"+shortHive(w[2])+`\`+name, number(data))
	}
	return true
}
