package admission

import (
	"hash/maphash"
	"math"
	"net/netip"
	"time"
)

// The table of buckets: 2048 sets of 8 places of 32 bytes are 512 KiB, made with the first packet.
const (
	tableSets = 1 << 11
	tableWays = 8
)

// source is what counts as one client: an IPv4 address, mapped into IPv6, or the first 48 bits of
// an IPv6 address.
type source [16]byte

// sourceOf returns the source of an address. All invalid addresses are one source.
func sourceOf(a netip.Addr) source {
	s := source(a.Unmap().As16())
	if a.IsValid() && !a.Unmap().Is4() {
		clear(s[6:])
	}
	return s
}

// bucket is one source's place in the table. The instants are when its buckets are full again.
type bucket struct {
	who            source
	packets, bytes time.Duration
}

// debt returns how long it takes until this place means nothing; the lower it is, the less is lost
// by giving the place away.
func (b *bucket) debt() time.Duration { return max(b.packets, b.bytes) }

// buckets are the buckets of all sources, and the common one of all of them together.
type buckets struct {
	packetCost time.Duration // a packet costs this much time of one source, in nanoseconds
	allCost    float64       // and this much of all sources together; below a nanosecond at high rates
	byteCost   float64       // a byte, of one source
	seed       maphash.Seed
	places     [][tableWays]bucket
	all        float64 // instant, in nanoseconds: a float because allCost is one
}

// bucketSpan is what a bucket holds: one second of its rate, or one packet if the rate is less than
// one per second.
const bucketSpan = time.Second

func newBuckets(l Limits) buckets {
	b := buckets{seed: maphash.MakeSeed()}
	perSecond := float64(time.Second)
	b.packetCost = nanos(math.Ceil(perSecond / l.PacketsPerSecond))
	b.allCost = perSecond / l.PacketsPerSecond / float64(l.Clients)
	// In the long run a source gets from a reflector what it may move by tests; a cap on the rate
	// of a test holds here too.
	bytesPerSecond := min(float64(l.SourceBytes)/l.SourceWindow.Seconds(), l.BitsPerSecond/8)
	if l.SourceBytes < math.MaxInt64 || !math.IsInf(l.BitsPerSecond, 1) {
		b.byteCost = perSecond / bytesPerSecond
	}
	return b
}

// Allow reports whether a server may answer this many packets with this many bytes of payload in
// all, which just came from an address that may be forged. It allows all or none, and a refusal
// costs the source nothing. A reflector best asks for every packet, or every burst that came from
// one source. It allocates nothing except the table, with the first packet of a gate.
func (g *Gate) Allow(from netip.Addr, packets, bytes int) bool {
	if packets <= 0 || bytes < 0 {
		return false
	}
	key := sourceOf(from)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.packets.take(key, packets, bytes, g.now())
}

// take takes packets and bytes out of a source's buckets and the common one, if all three have
// them.
func (b *buckets) take(who source, packets, bytes int, now time.Duration) bool {
	if b.places == nil {
		b.places = make([][tableWays]bucket, tableSets)
	}
	place := b.find(who, now)
	packetsAt := max(place.packets, now) + nanos(float64(packets)*float64(b.packetCost))
	bytesAt := max(place.bytes, now) + nanos(float64(bytes)*b.byteCost)
	allAt := max(b.all, float64(now)) + float64(packets)*b.allCost
	// A single packet passes a full bucket at any rate; otherwise rates below one per second would
	// let nothing through.
	full := place.debt() <= now && packets == 1
	if !full && (packetsAt-now > bucketSpan || bytesAt-now > bucketSpan) ||
		allAt-float64(now) > float64(max(bucketSpan, time.Duration(b.allCost))) {
		return false
	}
	place.packets, place.bytes, b.all = packetsAt, bytesAt, allAt
	return true
}

// find returns the place of a source: the one it has, an empty one, or that of the source in its
// set that is nearest to full buckets, with what is missing from them.
func (b *buckets) find(who source, now time.Duration) *bucket {
	set := &b.places[maphash.Bytes(b.seed, who[:])%tableSets]
	least := &set[0]
	for i := range set {
		place := &set[i]
		if place.who == who {
			return place
		}
		if place.debt() < least.debt() {
			least = place
		}
	}
	least.who = who
	return least
}
