package advice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
)

// Target is what advice is judged for. The zero value judges each setting for the newest release of
// the system that it belongs to.
type Target struct {
	OS      OS                                // empty: each setting for the system it belongs to
	Release map[OS]Release                    // by system; the newest when missing
	Present func(knob.ID) (knob.Value, error) // reads a present value of this host; nil: not asked
}

// FromBackend makes the function for Target.Present of a backend, whose Read is all that is called.
func FromBackend(ctx context.Context, b knob.Backend) func(knob.ID) (knob.Value, error) {
	return func(id knob.ID) (knob.Value, error) { return b.Read(ctx, id) }
}

// Judge returns a judgement for every setting of the advice, in its order, and one of Unknown for
// every line that was not understood.
func (t Target) Judge(a Advice) []Judgement {
	usual := t.OS
	if usual == "" {
		usual = a.usualOS()
	}
	all := make([]Judgement, 0, len(a.Settings)+len(a.Unread))
	around := make(text, len(a.Settings))
	for _, s := range a.Settings {
		around[s.Knob+"="+s.Value] = true
	}
	for _, s := range a.Settings {
		all = append(all, t.judge(s, usual, around))
	}
	for _, s := range a.Unread {
		all = append(all, Judgement{Setting: s, For: usual, Verdict: Unknown,
			Why: "Looks like a setting, in no form that is known here."})
	}
	sorting.StableFunc(all, func(x, y Judgement) int { return x.Line - y.Line })
	tellRepeated(all)
	return all
}

// openName reports whether a text leaves open which setting it means: the last part of the name is
// a variable. An interface, a queue or a key of the registry may be one.
func openName(id string) bool {
	last := id[strings.LastIndexAny(id, `.:/\`)+1:]
	if strings.HasPrefix(id, "registry:") {
		last = id[strings.LastIndexByte(id, '\\')+1:]
	}
	return (strings.Contains(last, "$") || formatted.MatchString(last)) && !strings.HasPrefix(id, "route:") &&
		!strings.HasPrefix(id, "qos:")
}

// text holds the settings of a text as NAME=VALUE, for rules that depend on another setting.
type text map[string]bool

// tellRepeated adds to a setting that a later line sets otherwise where that is. sysctl(8), the
// shell and regedit all work from top to bottom, so that the last one counts; files that have grown
// over years have both, and their readers find the first. It stays a sentence and changes no
// verdict, because a page may list one value for each kind of host.
func tellRepeated(all []Judgement) {
	last := map[string]Judgement{}
	for i := len(all) - 1; i >= 0; i-- {
		j := &all[i]
		// A star is any interface, and may be another one each time.
		if j.Knob == "" || strings.Contains(j.Knob, "*") {
			continue
		}
		if later, ok := last[j.Knob]; !ok {
			last[j.Knob] = *j
		} else if later.Value != j.Value && later.Line != j.Line {
			j.Why += fmt.Sprintf(" Line %d sets it to %s, and the last one counts.", later.Line, shortened(later.Value))
		}
	}
}

// usualOS is the system that most settings of a text belong to, Linux when none is more frequent.
// Lines that any system could have, like ifconfig, are then taken for its.
func (a Advice) usualOS() OS {
	count := map[OS]int{}
	for _, s := range a.Settings {
		count[s.OS]++
	}
	best := Linux
	for _, o := range Systems() {
		if count[o] > count[best] {
			best = o
		}
	}
	return best
}

// judge decides about one setting. A list of values for several NICs is judged value by value, and
// the worst counts.
func (t Target) judge(s Setting, usual OS, around text) Judgement {
	// A requested system applies to every line; otherwise a line belongs to the system of its name
	// or command.
	o := t.OS
	switch {
	case o == "" && s.OS != "":
		o = s.OS
	case o == "":
		o = usual
	}
	j := Judgement{Setting: s, For: o}
	if openName(s.Knob) {
		j.Verdict, j.Why = Unknown, "The name is a variable of the text."
		return j
	}
	// Only a requested system can differ here: a user who passes --os linux for a .reg file wants
	// to know the Linux setting to use instead.
	if s.OS != "" && !o.covers(s.OS) {
		j.Verdict, j.Source = Ignored, "the names of the settings of both systems"
		j.Why = fmt.Sprintf("A setting of %s; %s has no setting of that name.", s.OS.name(), o.name())
		j.Today = elsewhere(s, o)
		return j
	}
	// TuneD writes =>2048 for "at least 2048" (tuned.conf(5)): such a line raises a value and never
	// lowers it.
	bare, atLeast := strings.CutPrefix(s.Value, ">")
	values := []string{strings.TrimSpace(bare)}
	kind, _, _ := strings.Cut(s.Knob, ":")
	if kind == knob.KindModule || kind == "driver" {
		values = strings.Split(s.Value, ",")
		slices.Sort(values)
		values = slices.Compact(values)
	}
	worst := t.value(j, values[0], around)
	for _, v := range values[1:] {
		// In a list for several NICs, the default means "not this one", and says nothing about the
		// other NICs.
		if one := t.value(j, v, around); worst.Verdict == NowDefault || one.Verdict != NowDefault &&
			one.Verdict.Rank() > worst.Verdict.Rank() {
			worst = one
		}
	}
	j = worst
	if atLeast && j.Verdict == Harmful && j.Default != "" {
		j.Verdict, j.Today = NowDefault, "leave it out"
		j.Why = fmt.Sprintf("Raises the value to at least %s, and the default is %s.",
			strings.TrimSpace(bare), j.Default)
	}
	j.Value = s.Value
	if id, err := knob.ParseID(s.Knob); err == nil && t.Present != nil && o == Linux {
		// A knob that this host lacks, or does not show to this user, has no present value to
		// report.
		j.Current, _ = t.Present(id)
	}
	return j
}

// notNumber is a string of a text that gives a hexadecimal number without saying so.
var notNumber = pattern.New(`(?i)^[0-9a-f]{0,10}[a-f][0-9a-f]{0,10}$`)

// isNumbered are parts of names of the registry whose values are numbers.
var isNumbered = pattern.New(`(?i)(?:time|delay|interval|index|size|opts|ttl|max\w*|min\w*|ticks|frequency)$`)

// value applies facts and catalogue to one value.
func (t Target) value(j Judgement, value string, around text) Judgement {
	// The order is by certainty. Whether a setting exists does not depend on its value; a value out
	// of range is refused for any purpose; only then can a value be good or bad, the default or
	// less. Any other setting is in the catalogue, or unknown.
	release := t.Release[j.For]
	f, known := factOf(j.For, j.Knob)
	if j.Why, j.Source = misplaced(j.Knob, value); j.Why != "" {
		j.Verdict, j.Today = Ignored, "leave it out"
		return j
	}
	// A registry key in a variable: the name decides.
	if key, name := path.Split(strings.ReplaceAll(j.Knob, `\`, "/")); !known && strings.HasPrefix(key, "registry:") &&
		isVariable(strings.TrimPrefix(key, "registry:")) && strings.Count(key, "/") == 1 {
		if f, known = factOf(j.For, tcpipKey+name); !known && j.For == Windows {
			if near := nearValue(name); near != "" {
				return j.refused(near)
			}
		}
	}
	rules := applied{f: f, release: release, value: value, os: j.For, around: around}
	j.Value = value
	if r, ok := rules.first(func(r rule) bool {
		return !r.asksValue() && (r.Verdict == Removed || r.Verdict == Ignored && (r.Since != "" || r.Before != ""))
	}); ok {
		return j.by(r)
	}
	// A pattern also fits names that do not exist: a misspelt one would get the verdict of its kin.
	if known && j.For == Linux && strings.Contains(f.Knob, "*") {
		if near := misspelt(j.Knob); near != "" || absent(j.Knob) {
			return j.refused(near)
		}
	}
	if (!known || strings.Contains(f.Knob, "*")) && unknownName(j.For, j.Knob, known) {
		return j.refused(nearName(j.For, j.Knob))
	}
	if isVariable(value) {
		return j.open(rules)
	}
	d, listed := knob.Definition{}, false
	if j.For == Linux {
		d, listed = definition(j.Knob)
	}
	// The catalogue has only the disciplines that can be set without parameters; the kernel has
	// many more.
	if kind, _, _ := strings.Cut(j.Knob, ":"); listed && kind != knob.KindQdisc && f.Range == "" &&
		(value != "max" || kind != knob.KindEthtool) { // of systemd.link(5)
		// A sysctl or a NIC answers EINVAL, and the old value stays: the advice has no effect, and
		// nothing breaks.
		var refused *knob.RangeError
		if _, err := d.Normalize(knob.Value(inOrder(d, value))); errors.As(err, &refused) {
			j.Verdict, j.Source = Ignored, d.Source
			allowed := refused.Allowed
			if d.Count == 3 {
				allowed = strings.Replace(allowed, " in ascending order", "", 1)
			}
			j.Why = fmt.Sprintf("The kernel does not take this value: it wants %s.", allowed)
			return j
		}
	}
	if strings.HasPrefix(j.Knob, "registry:") && known && notNumber.MatchString(value) &&
		!slices.ContainsFunc(f.Rules, func(r rule) bool { return slices.Contains(r.Values, value) }) {
		number := isNumbered.MatchString(j.Knob)
		if n := len(f.Defaults); n > 0 {
			_, number = sized(f.Defaults[n-1].Value)
		}
		if number {
			j.Verdict, j.Source, j.Today = Ignored, f.Source, "leave it out"
			j.Why = "This is no number: reg.exe, for one, takes hexadecimal digits behind 0x alone."
			return j
		}
	}
	if allowed := f.outside(value); allowed != "" {
		j.Verdict, j.Source, j.Today = Ignored, f.Source, "leave it out"
		j.Why = fmt.Sprintf("%s does not take this value: it wants %s.", j.For.name(), allowed)
		return j
	}
	if special := specials[j.Knob]; special != nil {
		if r, ok := special(value); ok {
			return j.by(r)
		}
	}
	if r, ok := rules.first(rule.asksValue); ok {
		return j.by(r)
	}
	if out, ok := j.againstDefault(f, d, release); ok {
		return out
	}
	// netsh takes the word for every setting; reg and the cmdlets do not.
	if known && strings.HasPrefix(j.Knob, "netsh:") && value == "default" {
		j.Verdict, j.Why, j.Today, j.Source = NowDefault, "It sets the default.", "leave it out",
			"netsh interface tcp set global help"
		return j
	}
	if r, ok := rules.first(func(r rule) bool { return !r.asksValue() }); ok {
		return j.by(r)
	}
	switch {
	case listed:
		// A setting that exists does not necessarily help: the symptom in the catalogue states when
		// to change it, which old pages leave out.
		j.Verdict, j.Source, j.Default = StillRight, d.Source, d.Default
		j.Why = "Exists and has its effect; worth it only with its symptom: " + lowerFirst(d.Symptom)
		j.Today = "linerate knobs " + strings.TrimPrefix(j.Knob, "sysctl:")
	// A fact with defaults and no rule that fits: the setting lives, its default is another, and
	// nothing more is known.
	case known && f.Source != "":
		j.Verdict, j.Source = StillRight, f.Source
		j.Why = "Exists, and the value differs from the default of this release."
		j.Today = f.Today
	case known:
		j.Verdict, j.Why = Unknown, "The setting is known, and nothing about this value."
	case beside(j.For, j.Knob):
		j.Verdict, j.Why = Unknown, "No setting of the network."
	case !slices.Contains(Systems(), j.For):
		j.Verdict, j.Why = Unknown, "A setting of "+j.For.name()+", about which nothing is known here."
	default:
		return j.unheard()
	}
	return j
}

// inOrder sorts the three numbers of a buffer or of memory, whose order the kernel does not look
// at: it takes 8192 4096 2048 for tcp_rmem. The catalogue refuses them, which would be a mistake.
// The two ends of a range of ports do have to be in order.
func inOrder(d knob.Definition, value string) string {
	fields := strings.Fields(value)
	if !d.Ascending || d.Count != 3 {
		return value
	}
	sorting.StableFunc(fields, func(a, b string) int {
		x, _ := numberAt(a, 0)
		y, _ := numberAt(b, 0)
		return cmp.Compare(x, y)
	})
	return strings.Join(fields, " ")
}

// open judges a setting whose value the text leaves open: a variable, a placeholder. Only what
// holds for every value can be said.
func (j Judgement) open(rules applied) Judgement {
	if r, ok := rules.first(func(r rule) bool { return !r.asksValue() && len(rules.f.Rules) == 1 }); ok &&
		r.Verdict.Rank() > NowDefault.Rank() {
		return j.by(r)
	}
	j.Verdict, j.Why = Unknown, "The value is a variable or a placeholder of the text."
	if len(rules.f.Rules) == 0 && beside(j.For, j.Knob) { // kernel.core_pattern=/tmp/%e.core
		j.Why = "No setting of the network."
	}
	return j
}

// unheard judges a setting without a fact. Names that kernels had once are facts, so that one which
// the kernel does not have is misspelt, or of another kernel.
func (j Judgement) unheard() Judgement {
	if near := misspelt(j.Knob); j.For == Linux && (near != "" || absent(j.Knob)) {
		return j.refused(near)
	}
	j.Verdict, j.Why = Unknown, "Nothing is known here about this setting."
	return j
}

// refused judges a name that the system does not have, by the one that its author meant where one
// is near.
func (j Judgement) refused(near string) Judgement {
	j.Verdict, j.Source = Ignored, "the names below /proc/sys/net of Linux 6.18"
	j.Why, j.Today = "The kernel has no setting of this name, and refuses it.", near
	switch {
	case strings.HasPrefix(j.Knob, "ethtool:"):
		j.Why, j.Today = "The kernel has no feature of this name, and ethtool refuses it.", "leave it out"
		j.Source = "net/ethtool/common.c (netdev_features_strings)"
	case j.For != Linux:
		j.Source = "the names of the settings of " + j.For.name()
		j.Why = j.For.name() + " has no setting of this name."
		if near == "" {
			j.Today = "leave it out"
		}
	case near == "":
		j.Why, j.Today = "Linux 6.18 has no setting of this name, and refuses it; patched kernels may have one.",
			"leave it out"
	}
	return j
}

// besideNetwork are the beginnings of names of other parts of a system, which half of every file of
// settings is about. Facts come first: a few of them do concern the network.
var besideNetwork = map[OS][]string{
	Linux: {"sysctl:kernel.", "sysctl:fs.", "sysctl:vm.", "sysctl:abi.", "sysctl:dev.", "sysctl:debug.", "sysctl:user.",
		"tuned:"},
	FreeBSD: {"sysctl:kern.", "sysctl:vm.", "sysctl:vfs.", "sysctl:security.", "sysctl:machdep.", "sysctl:debug.",
		"sysctl:compat.", "sysctl:hint.", "sysctl:hw.acpi.", "sysctl:hw.kbd.", "sysctl:hw.snd.", "sysctl:hw.ibrs",
		"sysctl:hw.mds", "sysctl:hw.spec", "sysctl:hw.pci.", "sysctl:hw.psm.", "sysctl:hw.nvidia", "sysctl:hw.usb.",
		"sysctl:hw.syscons.", "sysctl:hw.vga.", "sysctl:dev.pcm.",
		"sysctl:dev.cpu.", "sysctl:dev.hwpstate", "kldload:"},
	NetBSD: {"sysctl:kern.", "sysctl:vm.", "sysctl:vfs.", "sysctl:security.", "sysctl:machdep.", "sysctl:ddb.",
		"sysctl:proc.", "sysctl:hw."},
	Darwin: {"sysctl:kern.", "sysctl:vm.", "sysctl:vfs.", "sysctl:security.", "sysctl:machdep.", "sysctl:debug.",
		"sysctl:hw.", "sysctl:iogpu."},
	Windows: {`registry:HKCU\Control Panel`, `registry:HKCU\Software`, `registry:HKLM\SYSTEM\CurrentControlSet\Control\`,
		`registry:HKLM\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate`},
}

// beside reports whether a setting belongs to another part of the system.
func beside(o OS, name string) bool {
	return slices.ContainsFunc(besideNetwork[o], func(p string) bool {
		return len(name) >= len(p) && strings.EqualFold(name[:len(p)], p)
	})
}

// by applies the verdict of a rule. The default stays unknown: a rule is about the advised value.
func (j Judgement) by(r rule) Judgement {
	j.Verdict, j.Why, j.Today, j.Source, j.Since = r.Verdict, r.Why, r.Today, r.Source, r.Since
	return j
}

// applied is a fact with what its rules are asked about.
type applied struct {
	f       fact
	release Release
	value   string
	os      OS
	around  text
}

// first finds the first rule of a class that fits. Classes exist because facts are written by users
// from top to bottom (removed, then values, then the rest), while judging has to put the range and
// the default between them.
func (a applied) first(class func(rule) bool) (rule, bool) {
	for _, r := range a.f.Rules {
		if class(r) && !a.around[r.Unless] && r.fits(a.f.Field, a.release, a.value, a.os) {
			return r, true
		}
	}
	return rule{}, false
}

// fits reports whether all conditions of a rule hold. Since is the first release that it holds for,
// Before the first that it does not.
func (r rule) fits(field int, release Release, value string, o OS) bool {
	// A rule whose release cannot be parsed for this system never matches; the check of the facts
	// ensures that no such rule exists.
	if since, err := ParseRelease(o, r.Since); r.Since != "" && (err != nil || release.before(since)) {
		return false
	}
	if end, err := ParseRelease(o, r.Before); r.Before != "" && (err != nil || !release.before(end)) {
		return false
	}
	if len(r.Values) > 0 && !slices.ContainsFunc(r.Values, func(v string) bool {
		return strings.EqualFold(v, value) || o == Windows && sameValue(v, value)
	}) {
		return false
	}
	if start, ok := numberAt(value, 1); r.StartBelow != nil && (!ok || start >= *r.StartBelow) {
		return false
	}
	if r.Below == nil && r.Above == nil {
		return true
	}
	// A value that is not a number is neither below nor above anything; a later rule may judge it.
	n, ok := numberAt(value, field)
	return ok && (r.Below == nil || n < *r.Below) && (r.Above == nil || n > *r.Above)
}

// numberAt returns one of several numbers, decimal, octal (0…) or hexadecimal (0x…) as the kernel
// parses them (lib/kstrtox.c, base 0). It returns false for other text and for a position after the
// last number.
func numberAt(value string, field int) (int64, bool) {
	fields := strings.Fields(value)
	if field < 0 || field >= len(fields) {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[field], 0, 64)
	return n, err == nil
}

// againstDefault compares with the default of the release: an equal value is NowDefault, and a
// lower one is Harmful where the fact has a reason.
func (j Judgement) againstDefault(f fact, d knob.Definition, release Release) (Judgement, bool) {
	k := knownDefault(j.For, j.Knob, f, d, release)
	was, since, source, read := k.value, k.since, k.source, k.read
	if was == "" {
		return j, false
	}
	j.Default = was
	// The catalogue knows which spellings are the same value: 4096 and 0x1000, f and 0000000f, on
	// and yes.
	same := strings.EqualFold(was, j.Value) || j.For != Linux && sameValue(was, j.Value)
	if d.Pattern != "" {
		same = d.Equal(knob.Value(was), knob.Value(j.Value))
	}
	asSince := read
	if since != "" {
		asSince = fmt.Sprintf(" since %s %s", j.For.name(), since)
	}
	if same {
		j.Verdict, j.Source, j.Since = NowDefault, source, since
		j.Why = fmt.Sprintf("That is the default%s.", asSince)
		j.Today = "leave it out"
		return j, true
	}
	// Old advice was written to raise something. Where the default has overtaken it, following it
	// lowers. For a delay it is the reverse.
	mine, ok := numberAt(j.Value, f.Field)
	theirs, known := numberAt(was, f.Field)
	if n, isSize := sized(j.Value); j.For != Linux && isSize {
		mine, ok = n, true
	}
	if n := f.changed(j.For, release, theirs); since != "" && n != since {
		since, asSince = n, read
		if n != "" {
			asSince = fmt.Sprintf(" since %s %s", j.For.name(), n)
		}
	}
	if ok && known && f.Higher != "" && mine > theirs {
		j.Verdict, j.Source, j.Since = Harmful, source, since
		j.Why = fmt.Sprintf("%s: %d, where the default%s is %d.", f.Higher, mine, asSince, theirs)
		j.Today = "leave it out"
		return j, true
	}
	if ok && known && f.Lower != "" && mine <= theirs {
		// The deciding number equals the default and the other numbers do not: the rules judge
		// them.
		if mine == theirs {
			return j, false
		}
		j.Verdict, j.Source, j.Since = Harmful, source, since
		j.Why = fmt.Sprintf("%s: %d, where the default%s is %d.", f.Lower, mine, asSince, theirs)
		j.Today = "leave it out"
		if f.Today != "" {
			j.Today = f.Today
		}
		return j, true
	}
	return j, false
}

// changed returns the release in which the number of a default that decides got its value: another
// number of the same setting may have changed later. Empty: it is the first one that is known.
func (f *fact) changed(o OS, release Release, number int64) string {
	since, last := "", int64(0)
	for i, h := range f.Defaults {
		from, err := ParseRelease(o, h.Since)
		if err != nil || release.before(from) {
			continue
		}
		n, _ := numberAt(h.Value, f.Field)
		if i > 0 && n != last {
			since = h.Since
		}
		last = n
	}
	if last != number {
		return ""
	}
	return since
}

// known is a default with what is known about it.
type known struct{ value, since, source, read string }

// knownDefault returns the default of a setting on a release; an empty value: not known, or
// different from host to host.
func knownDefault(o OS, name string, f fact, d knob.Definition, release Release) known {
	// Two sources: the catalogue has the default of the kernel that it was read on, the facts have
	// the history. Where both speak the history counts, because it knows the release that is judged
	// for.
	k := known{value: d.Default, source: d.Source}
	if k.value != "" && d.DefaultOn != "" {
		k.read = " (read on " + d.DefaultOn + ")"
	}
	for i, h := range f.Defaults {
		from, err := ParseRelease(o, h.Since)
		if err != nil || release.before(from) {
			continue
		}
		k = known{value: h.Value, since: h.Since, source: f.Source}
		if i == 0 {
			k.since = "" // the oldest that is known need not be the first
		}
	}
	// A setting without effect has a default as well.
	without := slices.ContainsFunc(f.Rules, func(r rule) bool {
		return !r.asksValue() && r.Verdict.Rank() > NowDefault.Rank()
	})
	if k.value == "" && o == Linux && !without {
		k = known{value: sysctlsOfLinux().defaults[strings.TrimPrefix(name, "sysctl:")],
			source: "a fresh network namespace of Linux 6.18", read: " (read on Linux 6.18)"}
	}
	return k
}

// Default returns the default of a setting on a release of a system, in the notation of Setting.
// Empty: not known, or different from host to host.
func Default(o OS, release Release, name string) string {
	f, _ := factOf(o, name)
	d := knob.Definition{}
	if o == Linux {
		d, _ = definition(name)
	}
	return knownDefault(o, name, f, d, release).value
}

// lowerFirst continues a sentence behind a colon. Names in capitals (TCP, RDMA) stay as they are,
// and so does a sentence of one letter.
func lowerFirst(s string) string {
	if len(s) < 2 || s[0] < 'A' || s[0] > 'Z' || s[1] < 'a' || s[1] > 'z' {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
