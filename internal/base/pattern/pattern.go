package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression. Goroutines may share it.
type Pattern struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns the pattern of an expression in the syntax of package regexp. The first use panics
// when it is not valid.
func New(text string) *Pattern { return &Pattern{text: text} }

func (p *Pattern) compile() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}

// MatchString is the method of [regexp.Regexp], as are all below.
func (p *Pattern) MatchString(s string) bool { return p.compile().MatchString(s) }

// FindString returns the leftmost match.
func (p *Pattern) FindString(s string) string { return p.compile().FindString(s) }

// FindStringSubmatch returns the leftmost match and its groups.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compile().FindStringSubmatch(s) }

// FindStringSubmatchIndex returns where these begin and end, in bytes.
func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	return p.compile().FindStringSubmatchIndex(s)
}

// FindAllString returns at most n matches; -1 means all.
func (p *Pattern) FindAllString(s string, n int) []string { return p.compile().FindAllString(s, n) }

// FindAllStringIndex returns where at most n matches begin and end, in bytes.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compile().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch returns at most n matches and their groups.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compile().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns where these begin and end, in bytes.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compile().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString replaces every match by a template.
func (p *Pattern) ReplaceAllString(s, by string) string { return p.compile().ReplaceAllString(s, by) }

// ReplaceAllStringFunc replaces every match by what a function makes of it.
func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.compile().ReplaceAllStringFunc(s, by)
}

// Split cuts a text at matches into at most n parts; -1 means all.
func (p *Pattern) Split(s string, n int) []string { return p.compile().Split(s, n) }

// Match reports whether bytes have a match.
func (p *Pattern) Match(b []byte) bool { return p.compile().Match(b) }

// FindAllSubmatch returns at most n matches in bytes and their groups.
func (p *Pattern) FindAllSubmatch(b []byte, n int) [][][]byte {
	return p.compile().FindAllSubmatch(b, n)
}

// SubexpIndex returns the number of a named group, -1 when there is none.
func (p *Pattern) SubexpIndex(name string) int { return p.compile().SubexpIndex(name) }
