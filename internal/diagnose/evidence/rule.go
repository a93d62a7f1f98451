package evidence

import "slices"

// Rule gives one code. It has one of the three functions; each returns nil if it finds nothing, and
// none keeps state between two calls.
type Rule struct {
	Code Code
	// Flow examines one loaded direction with both of its ends. It is not called if a link is full
	// by its known speed, because that explains everything that a flow may show.
	Flow func(*Flow) *Finding
	// Span examines one host over a period.
	Span func(*Span) *Finding
	// Case examines everything: what several runs and probes show together.
	Case func(*Case) *Finding
	// Explains lists the symptoms of this fault, which the finding mutes where it is at least as
	// severe: only removing the cause helps, and two findings for one fault would confuse.
	Explains []Code
}

// Probe names a further run that a rule may ask for. The caller that runs it decides its load and
// length.
type Probe string

// The probes, each in the direction of the slowest flow unless its name says otherwise. A probe
// takes two seconds at most.
const (
	ProbeMTU     Probe = "mtu"     // the largest packets that pass unfragmented, by bisection
	ProbeStreams Probe = "streams" // eight streams instead of one
	ProbeUDP     Probe = "udp"     // datagrams at half of the flow's rate
	ProbePaced   Probe = "paced"   // one stream paced to 80 % of the flow's rate
	ProbeReverse Probe = "reverse" // one stream in the other direction
	ProbeConnect Probe = "connect" // one connection per transaction
	// responses of 256 KiB over one connection, with a pause before each that outlasts the
	// retransmission timer
	ProbeObjects Probe = "objects"
)

// ProbeCongestion returns the probe of one stream with another congestion control, which the sender
// sets for its socket alone (TCP_CONGESTION).
func ProbeCongestion(name string) Probe { return Probe("congestion:" + name) }

// Ask returns the result of a probe. It returns false if the probe has not run, and then asks for
// it; or if it could not be made, for the reason in [Case.Refused].
func (c *Case) Ask(p Probe) (*Run, bool) {
	if r, ok := c.Probes[p]; ok {
		return &r, true
	}
	if _, no := c.Refused[p]; !no && !slices.Contains(c.wanted, p) {
		c.wanted = append(c.wanted, p)
	}
	return nil, false
}

// Wanted returns the probes that rules asked for and that have not run, in the order of asking.
func (c *Case) Wanted() []Probe { return slices.Clone(c.wanted) }
