package evidence

import "slices"

// Rule is what gives one code. It has one of the three functions; each answers nil where it finds
// nothing, and none keeps anything between two calls.
type Rule struct {
	Code Code
	// Flow looks at one loaded direction with both of its ends. It is not asked where a link is
	// full by its known speed, as that explains whatever a flow shows.
	Flow func(*Flow) *Finding
	// Span looks at one host over a time.
	Span func(*Span) *Finding
	// Case looks at everything: at what several runs and probes say together.
	Case func(*Case) *Finding
}

// Probe names a further run that a rule may ask for. What each loads, and for how long, is decided
// by who runs it.
type Probe string

// The probes, each in the direction of the slowest flow unless its name says otherwise. They take
// two seconds at most.
const (
	ProbeMTU     Probe = "mtu"     // the largest packets that pass without being fragmented, by bisection
	ProbeStreams Probe = "streams" // eight streams instead of one
	ProbeUDP     Probe = "udp"     // datagrams at half of the rate that the flow had
	ProbePaced   Probe = "paced"   // one stream paced to eight tenths of the rate that the flow had
	ProbeReverse Probe = "reverse" // one stream the other way
	ProbeConnect Probe = "connect" // a connection per transaction
	// responses of 256 KiB over one connection, with a pause before each that outlasts the
	// retransmission timer
	ProbeObjects Probe = "objects"
)

// ProbeCongestion is one stream with another congestion control, which the sender sets for its
// socket alone (TCP_CONGESTION).
func ProbeCongestion(name string) Probe { return Probe("congestion:" + name) }

// Ask gives what a probe came to. False: it has not been run, and now is wanted; or it could not be
// made, which [Case.Refused] tells.
func (c *Case) Ask(p Probe) (*Run, bool) {
	if r, ok := c.Probes[p]; ok {
		return &r, true
	}
	if _, no := c.Refused[p]; !no && !slices.Contains(c.wanted, p) {
		c.wanted = append(c.wanted, p)
	}
	return nil, false
}

// Wanted are the probes that rules have asked for and that have not been made, in the order of
// asking.
func (c *Case) Wanted() []Probe { return slices.Clone(c.wanted) }
