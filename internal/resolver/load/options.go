package load

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/resolver/names"
)

// Transport is what carries queries.
type Transport string

// The transports.
const (
	UDP   Transport = "udp"
	TCP   Transport = "tcp"
	TLS   Transport = "tls"   // RFC 7858, port 853
	HTTPS Transport = "https" // RFC 8484 over HTTP/2, port 443
)

// Port returns the port that the transport's RFC assigns.
func (t Transport) Port() uint16 {
	switch t {
	case TLS:
		return 853
	case HTTPS:
		return 443
	}
	return 53
}

// Mode is how a load chooses the time of its queries.
type Mode string

// The modes.
const (
	Open   Mode = "open"
	Closed Mode = "closed"
	Ramp   Mode = "ramp"
)

// Limits of a load.
const (
	MaxRate        = 5e6              // queries per second
	MaxDuration    = time.Hour        // of one load, or of one step of a ramp
	MaxTimeout     = time.Minute      // for one query
	MaxSockets     = 4096             // ports or connections
	MaxOutstanding = 1_000_000        // queries waiting at a time
	leastInterval  = time.Second / 10 // of interim results
	mostQueries    = 1 << 40
)

// Options describe a load. Zero fields mean the defaults that [Options.Filled] sets.
type Options struct {
	Server     netip.AddrPort
	Transport  Transport // default UDP
	ServerName string    // TLS and HTTPS: verify the certificate for this name; empty: do not verify it
	Path       string    // HTTPS; default /dns-query
	Mode       Mode      // default open

	Rate        float64       // queries per second of an open loop; default 1000
	Outstanding int           // of a closed loop; default 100, as dnsperf
	Duration    time.Duration // default 10 s, with Queries MaxDuration; of one step of a ramp: 2 s
	Queries     uint64        // end after this many, not of a ramp; 0: no bound
	Timeout     time.Duration // after which a query is lost; default 5 s
	Interval    time.Duration // of interim results; default 1 s

	Sockets       int // ports, or connections; default 16
	Workers       int // threads that send and receive over UDP on Linux; default 1
	PerConnection int // TCP, TLS: queries after which a connection is replaced; 0: no bound
	Seed          uint64
	FreshFrom     uint64 // serial number after which the fresh names of a model begin, see [names.Set.Drawer]

	Names *names.Set

	// Ramp: the first rate, and what ends it.
	FirstRate float64       // default 1000
	MostLoss  float64       // ratio of queries without a sound answer that the knee may have; default 0.01
	MostP99   time.Duration // 99th percentile that the knee may have; 0: any
}

// ErrOptions is wrapped by every error about a load that cannot be run.
var ErrOptions = errors.New("impossible load")

// Filled returns the options with defaults in place, or what makes them impossible.
func (o Options) Filled() (Options, error) {
	bad := func(format string, args ...any) (Options, error) {
		return o, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
	}
	if o.Transport == "" {
		o.Transport = UDP
	}
	if o.Mode == "" {
		o.Mode = Open
	}
	fill(&o.Path, "/dns-query")
	fill(&o.Rate, 1000)
	fill(&o.FirstRate, 1000)
	fill(&o.MostLoss, 0.01)
	fill(&o.Outstanding, 100)
	fill(&o.Timeout, 5*time.Second)
	fill(&o.Interval, time.Second)
	fill(&o.Sockets, 16)
	fill(&o.Workers, 1)
	bounded := o.Duration != 0
	switch {
	case bounded:
	case o.Mode == Ramp:
		o.Duration = 2 * time.Second
	case o.Queries > 0: // like dnsperf -n, which has a time limit only with -l
		o.Duration = MaxDuration
	default:
		o.Duration = 10 * time.Second
	}
	switch {
	case o.Names == nil || o.Names.Len() == 0:
		return bad("there are no names to ask for")
	case !o.Server.IsValid() || o.Server.Port() == 0:
		return bad("there is no server address")
	case o.Transport != UDP && o.Transport != TCP && o.Transport != TLS && o.Transport != HTTPS:
		return bad("transport %q is not one of udp, tcp, tls, https", o.Transport)
	case o.Mode != Open && o.Mode != Closed && o.Mode != Ramp:
		return bad("mode %q is not one of open, closed, ramp", o.Mode)
	case !(o.Rate > 0 && o.Rate <= MaxRate) || !(o.FirstRate > 0 && o.FirstRate <= MaxRate):
		return bad("the rate is not above 0 and up to %g queries a second", MaxRate)
	case !(o.MostLoss > 0 && o.MostLoss < 1):
		return bad("the loss limit %g is not between 0 and 1", o.MostLoss)
	case o.Duration < 0 || o.Duration > MaxDuration:
		return bad("a duration of %v is not up to %v", o.Duration, MaxDuration)
	case o.Queries > mostQueries:
		return bad("%d queries are more than %d", o.Queries, uint64(mostQueries))
	case o.Queries > 0 && o.Mode == Ramp:
		return bad("a ramp has no number of queries")
	case !bounded && o.Mode == Open && float64(o.Queries) > o.Rate*MaxDuration.Seconds():
		return bad("%d queries at %g a second last longer than %v", o.Queries, o.Rate, MaxDuration)
	case o.Timeout < time.Millisecond || o.Timeout > MaxTimeout:
		return bad("a timeout of %v is not between 1ms and %v", o.Timeout, MaxTimeout)
	case o.Interval < leastInterval:
		return bad("an interval of %v is below %v", o.Interval, leastInterval)
	case o.Sockets < 1 || o.Sockets > MaxSockets:
		return bad("%d sockets are not between 1 and %d", o.Sockets, MaxSockets)
	case o.Workers < 1 || o.Workers > o.Sockets:
		return bad("%d workers are not between 1 and the %d sockets", o.Workers, o.Sockets)
	case o.Outstanding < 1 || o.Outstanding > MaxOutstanding:
		return bad("%d outstanding queries are not between 1 and %d", o.Outstanding, MaxOutstanding)
	case o.PerConnection < 0:
		return bad("%d queries for each connection are fewer than none", o.PerConnection)
	case len(o.Path) > 1024 || o.Path[0] != '/':
		return bad("the path of https does not begin with / or has more than 1024 octets")
	}
	if o.Queries > 0 { // each worker has one: for a worker 0 is no bound
		o.Workers = int(min(uint64(o.Workers), o.Queries))
	}
	return o, nil
}

// fill sets a field that is zero.
func fill[T comparable](field *T, to T) {
	var zero T
	if *field == zero {
		*field = to
	}
}

// mostPlaces bounds the tables of all sockets together, of 32 octets a place.
const mostPlaces = 1 << 22

// inFlight returns for how many queries one of n sockets needs places. An open loop has at most
// those of one timeout.
func (o Options) inFlight(n int) int {
	all := min(mostPlaces/2, n*mostTable/2)
	if o.Mode == Open {
		all = min(int(min(o.Rate*o.Timeout.Seconds(), MaxOutstanding)), all)
	}
	return all/n + 1
}
