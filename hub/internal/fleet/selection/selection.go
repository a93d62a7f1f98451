package selection

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// Bounds of a text.
const (
	mostBytes = 4096
	mostTerms = 64
	mostParts = 256 // values of one term
)

// Host is what a selection asks about a host.
type Host interface {
	// Values returns what the host has under a key of [Keys] or label.NAME, and nothing if that is
	// not known.
	Values(key string) []string
	// Knob returns the value of a knob, if it is known.
	Knob(name string) (string, bool)
	// Seen returns when the host last spoke; zero: never.
	Seen() time.Time
}

// kind says how the values of a key are compared.
type kind int

const (
	text kind = iota
	class
	since   // a time
	version // numbers and dots
	number
)

// keys are the keys that a term may have.
var keys = map[string]kind{
	"host": text, "id": text, "state": text, "group": text, "site": text, "rack": text, "role": text, "finding": text,
	"drift": text, "kernel": version, "driver": text, "virtual": text, "os": text, "arch": text, "cpu": text,
	"class": class, "seen": since, "version": version, "differs": number, "cpus": number,
}

// Keys returns the keys that a term may have, sorted; knob and label.NAME besides.
func Keys() []string {
	all := make([]string, 0, len(keys))
	for k := range keys {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// operator compares.
type operator string

const (
	is           operator = ":"
	equal        operator = "="
	unequal      operator = "!="
	less         operator = "<"
	lessEqual    operator = "<="
	greater      operator = ">"
	greaterEqual operator = ">="
)

// term is one condition.
type term struct {
	not    bool
	key    string
	knob   string // of the key knob
	op     operator
	values []string
	age    time.Duration // of seen
}

// Selection chooses hosts. The zero value chooses all.
type Selection struct {
	terms []term
}

// Error is a mistake in a text.
type Error struct {
	Term   string // where it is
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("selection %.200q: %s", e.Term, e.Reason) }

// Parse reads a text. The error is an *[Error].
func Parse(s string) (Selection, error) {
	if len(s) > mostBytes {
		return Selection{}, &Error{s[:40] + "…", fmt.Sprintf("longer than %d bytes", mostBytes)}
	}
	words, err := split(s)
	if err != nil {
		return Selection{}, &Error{s, err.Error()}
	}
	if len(words) > mostTerms {
		return Selection{}, &Error{s, fmt.Sprintf("more than %d terms", mostTerms)}
	}
	var out Selection
	for _, w := range words {
		t, err := parseTerm(w)
		if err != nil {
			return Selection{}, &Error{w.String(), err.Error()}
		}
		out.terms = append(out.terms, t)
	}
	return out, nil
}

// letter is a letter of a word, and whether quotes made it plain.
type letter struct {
	r      rune
	quoted bool
}

type word []letter

func (w word) String() string {
	var b strings.Builder
	for _, l := range w {
		b.WriteRune(l.r)
	}
	return b.String()
}

// split returns the words between blanks outside quotes.
func split(s string) ([]word, error) {
	var (
		words            []word
		now              word
		inside, open, bs bool // inside quotes, inside a word, after a backslash
	)
	for _, r := range s {
		switch {
		case inside && bs:
			now, bs = append(now, letter{r, true}), false
		case inside && r == '\\':
			bs = true
		case r == '"':
			inside, open = !inside, true
		case inside:
			now = append(now, letter{r, true})
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if open {
				words, now, open = append(words, now), nil, false
			}
		default:
			now, open = append(now, letter{r, false}), true
		}
	}
	if inside {
		return nil, errors.New("a quotation mark has no end")
	}
	if open {
		words = append(words, now)
	}
	return words, nil
}

// cut returns what is before and after the first operator outside quotes, of those given.
func (w word) cut(letters string) (before word, op operator, after word) {
	for i, l := range w {
		if l.quoted || !strings.ContainsRune(letters, l.r) {
			continue
		}
		op, rest := operator(l.r), w[i+1:]
		if l.r == '!' {
			if len(rest) == 0 || rest[0].quoted || rest[0].r != '=' {
				continue
			}
			return w[:i], unequal, rest[1:]
		}
		if (l.r == '<' || l.r == '>') && len(rest) > 0 && !rest[0].quoted && rest[0].r == '=' {
			op, rest = op+"=", rest[1:]
		}
		return w[:i], op, rest
	}
	return w, "", nil
}

// values splits at commas outside quotes. A wildcard in quotes is a plain letter.
func (w word) values() []string {
	var all []string
	var b strings.Builder
	for _, l := range w {
		switch {
		case l.r == ',' && !l.quoted:
			all = append(all, b.String())
			b.Reset()
			continue
		case strings.ContainsRune(`*?[\`, l.r) && (l.quoted || l.r == '[' || l.r == '\\'):
			b.WriteByte('\\')
		}
		b.WriteRune(l.r)
	}
	return append(all, b.String())
}

func parseTerm(w word) (term, error) {
	var t term
	if len(w) > 0 && w[0].r == '-' && !w[0].quoted {
		t.not, w = true, w[1:]
	}
	name, op, rest := w.cut(":<>")
	t.key, t.op = strings.ToLower(name.String()), op
	if op == "" {
		t.key, t.op, rest = "host", is, w
	}
	if t.key == "knob" && op == is {
		before, compare, value := rest.cut("=!")
		if compare != equal && compare != unequal || len(before) == 0 {
			return t, errors.New("want knob:NAME=VALUE or knob:NAME!=VALUE")
		}
		t.knob, t.op = before.String(), compare
		t.values = []string{value.String()}
		return t, nil
	}
	k, known := keys[t.key]
	if label, ok := strings.CutPrefix(t.key, "label."); ok && label != "" {
		k, known = text, true
	}
	if !known {
		return t, fmt.Errorf("no key %.40q; the keys are %s, knob and label.NAME", t.key, strings.Join(Keys(), ", "))
	}
	if t.values = rest.values(); len(t.values) > mostParts {
		return t, fmt.Errorf("more than %d values", mostParts)
	}
	return t, t.check(k)
}

// check finds values that their key cannot have.
func (t *term) check(k kind) error {
	ordered := t.op != is
	for _, v := range t.values {
		if v == "" {
			return errors.New("a value is empty")
		}
		if _, err := path.Match(v, ""); err != nil {
			return fmt.Errorf("%.40q is not a pattern", v)
		}
		if ordered && k == number {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				return fmt.Errorf("%.40q is not a number", v)
			}
		}
		if ordered && k == version && !isVersion(v) {
			return fmt.Errorf("%.40q is not a version", v)
		}
	}
	switch {
	case k == since && !ordered:
		return errors.New("write seen>10m or seen<1h")
	case k == since:
		d, err := unit.ParseSpan(strings.Join(t.values, ","))
		if err != nil || d < 0 {
			return errors.New("want a duration as in 90s, 10m, 2h, 3d")
		}
		t.age = time.Duration(d)
	case ordered && (k == text || k == class):
		return fmt.Errorf("%s has no order: write %s:VALUE", t.key, t.key)
	case ordered && len(t.values) > 1:
		return errors.New("one value can be compared, not a list")
	case t.key == "drift" && !slices.Contains([]string{"yes", "no"}, strings.ToLower(t.values[0])):
		return errors.New("write drift:yes or drift:no")
	}
	return nil
}

// Match reports whether all terms hold for a host at a time.
func (s Selection) Match(h Host, now time.Time) bool {
	for i := range s.terms {
		if s.terms[i].holds(h, now) == s.terms[i].not {
			return false
		}
	}
	return true
}

// Everything reports whether the selection has no term.
func (s Selection) Everything() bool { return len(s.terms) == 0 }

func (t *term) holds(h Host, now time.Time) bool {
	switch {
	case t.key == "knob":
		v, ok := h.Knob(t.knob)
		return ok && (squeeze(v) == squeeze(t.values[0])) == (t.op == equal)
	case t.key == "seen":
		at := h.Seen()
		if at.IsZero() { // never: longer ago than anything
			return t.op == greater || t.op == greaterEqual
		}
		return compares(t.op, int(max(min(now.Sub(at)-t.age, 1), -1)))
	}
	for _, have := range h.Values(t.key) {
		for _, want := range t.values {
			if t.fits(have, want) {
				return true
			}
		}
	}
	return false
}

// squeeze makes blanks of any length one: the kernel prints tabs where people type a blank.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func (t *term) fits(have, want string) bool {
	if t.op == is {
		have, want = strings.ToLower(have), strings.ToLower(want)
		// A wildcard of package path stops at a slash, which here is a letter like others.
		if ok, err := path.Match(want, strings.ReplaceAll(have, "/", "∕")); ok || err != nil {
			return ok
		}
		if ok, _ := path.Match(want, have); ok {
			return true
		}
		return keys[t.key] == class && strings.HasPrefix(have, want+"-")
	}
	if keys[t.key] == number {
		a, err := strconv.ParseFloat(have, 64)
		b, err2 := strconv.ParseFloat(want, 64)
		if err != nil || err2 != nil {
			return false
		}
		switch {
		case a < b:
			return compares(t.op, -1)
		case a > b:
			return compares(t.op, 1)
		}
		return compares(t.op, 0)
	}
	return isVersion(have) && compares(t.op, compareVersions(have, want))
}

// compares reports whether an operator holds for a comparison's result.
func compares(op operator, c int) bool {
	switch op {
	case less:
		return c < 0
	case lessEqual:
		return c <= 0
	case greater:
		return c > 0
	case greaterEqual:
		return c >= 0
	}
	return false
}

// isVersion reports whether a text begins with a number.
func isVersion(s string) bool {
	s = strings.TrimPrefix(s, "v")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// compareVersions compares the numbers of two versions one by one; a missing one is zero. Text
// after the numbers (-rc1, -amd64) does not count.
func compareVersions(a, b string) int {
	x, y := numbers(a), numbers(b)
	for len(x) < len(y) {
		x = append(x, 0)
	}
	for len(y) < len(x) {
		y = append(y, 0)
	}
	return slices.Compare(x, y)
}

func numbers(s string) []uint64 {
	s = strings.TrimPrefix(s, "v")
	if i := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		s = s[:i]
	}
	var all []uint64
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}
