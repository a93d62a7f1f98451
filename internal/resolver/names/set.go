package names

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/linerate/linerate/internal/resolver/message"
)

// MaxQuestions bounds a set. With names of average length it takes 400 MB.
const MaxQuestions = 5_000_000

// ErrNames is wrapped by every error about questions that cannot be asked.
var ErrNames = errors.New("unusable list of names")

// Expectation is what a sound answer to one question says. The zero value expects nothing.
type Expectation struct {
	Code    message.RCode
	HasCode bool
	Address []byte // 4 or 16 octets that one record of the answer holds; nil: any
}

// Set is a set of questions. It does not change while a load runs, so all workers share it.
type Set struct {
	packed   []byte   // queries with id 0, one after the other
	ends     []uint32 // of each in packed, in units of one octet
	expected map[uint32]Expectation
	options  message.QueryOptions

	model *Model
	fresh []byte // a query whose first label is a number, for names that no query asked for before
}

// freshBit marks the index of a name that no query asked for before.
const freshBit = 1 << 31

// freshDigits is the length of the first label of such a name, without its first letter.
const freshDigits = 16

// newSet returns an empty set.
func newSet(o message.QueryOptions) *Set { return &Set{options: o, expected: map[uint32]Expectation{}} }

// add packs one question.
func (s *Set) add(name string, t message.Type, e Expectation) error {
	wire, err := message.AppendName(nil, name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNames, err)
	}
	if len(s.ends) >= MaxQuestions {
		return fmt.Errorf("%w: more than %d questions", ErrNames, MaxQuestions)
	}
	if e.HasCode || e.Address != nil {
		s.expected[uint32(len(s.ends))] = e
	}
	s.packed = message.AppendQuery(s.packed, wire, t, s.options)
	s.ends = append(s.ends, uint32(len(s.packed)))
	return nil
}

// Len returns how many questions the set has, without the fresh ones of a model.
func (s *Set) Len() int { return len(s.ends) }

// query returns a packed query of the set.
func (s *Set) query(i uint32) []byte {
	begin := uint32(0)
	if i > 0 {
		begin = s.ends[i-1]
	}
	return s.packed[begin:s.ends[i]]
}

// Longest returns the octets of the longest query.
func (s *Set) Longest() int {
	longest, begin := len(s.fresh), uint32(0)
	for _, end := range s.ends {
		longest = max(longest, int(end-begin))
		begin = end
	}
	return longest
}

// Compose writes the query with this index and id into b, which has room for [Set.Longest] octets,
// and returns its length. The serial number makes a fresh name.
func (s *Set) Compose(b []byte, index uint32, serial uint64, id uint16) int {
	n := 0
	if index&freshBit == 0 {
		n = copy(b, s.query(index))
	} else {
		n = copy(b, s.fresh)
		putSerial(b[message.HeaderBytes+2:], serial)
	}
	binary.BigEndian.PutUint16(b, id)
	return n
}

// Question returns the question (name, type, class) of a query. It may be written to scratch, which
// has room for [Set.Longest] octets.
func (s *Set) Question(scratch []byte, index uint32, serial uint64) []byte {
	var q []byte
	if index&freshBit == 0 {
		q = s.query(index)
	} else {
		n := copy(scratch, s.fresh)
		q = scratch[:n]
		putSerial(q[message.HeaderBytes+2:], serial)
	}
	end := len(q)
	if s.options.UDPBytes > 0 {
		end -= optBytes
	}
	return q[message.HeaderBytes:end]
}

// optBytes is the length of an OPT record without options.
const optBytes = 11

// Expected returns what the answer to a query must say.
func (s *Set) Expected(index uint32) (Expectation, bool) {
	if s.model != nil {
		return s.model.expected(index), true
	}
	if len(s.expected) == 0 {
		return Expectation{}, false
	}
	e, ok := s.expected[index]
	return e, ok
}

// putSerial writes 16 hexadecimal digits.
func putSerial(b []byte, serial uint64) {
	const digits = "0123456789abcdef"
	for i := freshDigits - 1; i >= 0; i-- {
		b[i] = digits[serial&15]
		serial >>= 4
	}
}

// Drawer chooses questions for one worker. It is not safe for concurrent use.
type Drawer struct {
	set   *Set
	next  uint32
	step  uint32
	rnd   *rand.Rand
	zipf  *zipf
	begin uint64
	count uint64
}

// Drawer returns the drawer of one of several workers. Together they ask every question of a file
// once before any a second time. The seed makes the choices of a model repeatable. Its fresh names
// begin behind the given number, as those before it may be in a cache.
func (s *Set) Drawer(worker, workers int, seed, behind uint64) *Drawer {
	d := &Drawer{set: s, next: uint32(worker), step: uint32(workers)}
	if s.model != nil {
		d.begin = rand.NewPCG(seed, ^uint64(worker)).Uint64() + behind // far from that of any other worker and seed
		d.rnd = rand.New(rand.NewPCG(seed, uint64(worker)))
		if s.model.Exponent > 0 {
			d.zipf = newZipf(d.rnd, s.model.Exponent, s.Len())
		}
	}
	return d
}

// Next returns the index of the next query, and the serial number that makes it fresh if it is.
func (d *Drawer) Next() (index uint32, serial uint64) {
	if d.rnd == nil {
		i := d.next % uint32(d.set.Len())
		d.next += d.step
		if d.next >= freshBit {
			d.next %= uint32(d.set.Len()) * d.step
		}
		return i, 0
	}
	if m := d.set.model; m.HitRatio < 1 && d.rnd.Float64() >= m.HitRatio {
		d.count++
		return freshBit, d.begin + d.count
	}
	if d.zipf != nil {
		return d.zipf.draw(), 0
	}
	return d.rnd.Uint32N(uint32(d.set.Len())), 0
}

// UDPBytes returns the largest answer over UDP that the queries allow; 0: they have no OPT record.
func (s *Set) UDPBytes() int { return int(s.options.UDPBytes) }
