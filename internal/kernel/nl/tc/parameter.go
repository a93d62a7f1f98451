package tc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// Errors of this package.
var (
	// ErrUnknown reports a kind or parameter that this package does not support.
	ErrUnknown = errors.New("unknown parameter of a queueing discipline")
	// ErrAbsent reports that the kernel's options lack the parameter, because the kernel is older
	// than the parameter.
	ErrAbsent = errors.New("the running kernel does not report this parameter")
	// ErrValue reports a text that is not a value of the parameter.
	ErrValue = errors.New("not a value of this parameter")
)

// Never is a threshold that is never reached: ce_threshold if no packet is to be marked.
const Never = math.MaxUint32

// form is the encoding of a parameter in its attribute.
type form int

const (
	number        form = iota // u32
	onOff8                    // u8, 0 or 1
	onOff                     // u32, 0 or 1
	word                      // u32, an index into words
	rate32                    // u32 bytes per second, all ones for no limit; a text of bits per second, 0 for no limit
	rate64                    // u64 bytes per second, 0 for no limit
	speed32                   // u32 bytes per second that is a threshold: 0 means 0
	log2                      // u32, the exponent of a power of two
	codel                     // u32 microseconds that the kernel keeps in units of 1.024 µs
	never                     // codel, and absent from the answer when it is Never
	overheadOrRaw             // s32 bytes of overhead, or the word raw: two attributes
)

// parameter describes one parameter of a kind. Standard is the kernel's default in the text form of
// Get; it is empty if the default depends on the kernel or the link.
type parameter struct {
	name     string
	typ      uint16 // TCA_*
	form     form
	words    []string
	standard string
	once     bool // can be set only at the creation of the discipline
}

// The attribute numbers are TCA_FQ_*, TCA_FQ_CODEL_* and TCA_CAKE_* of linux/pkt_sched.h; the
// defaults are those of the init functions.
var kinds = map[string][]parameter{
	"fq": {
		{name: "limit", typ: 1, standard: "10000"},
		{name: "flow_limit", typ: 2, standard: "100"},
		{name: "quantum", typ: 3},
		{name: "initial_quantum", typ: 4},
		{name: "pacing", typ: 5, form: onOff, standard: "on"},
		{name: "maxrate", typ: 7, form: rate32, standard: "0"},
		{name: "buckets", typ: 8, form: log2, standard: "1024"},
		{name: "refill_delay", typ: 9, standard: "40000"},
		{name: "orphan_mask", typ: 10, standard: "1023"},
		{name: "low_rate_threshold", typ: 11, form: speed32, standard: "550000"},
		{name: "ce_threshold", typ: 12, standard: "4294967295"},
		{name: "timer_slack", typ: 13, standard: "10000"},
		{name: "horizon", typ: 14, standard: "10000000"},
		{name: "horizon_drop", typ: 15, form: onOff8, standard: "on"},
		{name: "offload_horizon", typ: 18},
	},
	"fq_codel": {
		{name: "target", typ: 1, form: codel, standard: "4999"}, // 5000 in units of 1.024 µs
		{name: "limit", typ: 2, standard: "10240"},
		{name: "interval", typ: 3, form: codel, standard: "99999"},
		{name: "ecn", typ: 4, form: onOff, standard: "on"},
		{name: "flows", typ: 5, standard: "1024", once: true},
		{name: "quantum", typ: 6},
		{name: "ce_threshold", typ: 7, form: never, standard: "4294967295"},
		{name: "drop_batch", typ: 8, standard: "64"},
		{name: "memory_limit", typ: 9, standard: "33554432"},
	},
	"cake": {
		{name: "bandwidth", typ: 2, form: rate64, standard: "0"},
		{name: "diffserv", typ: 3, form: word, standard: "diffserv3",
			words: []string{"diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"}},
		{name: "atm", typ: 4, form: word, standard: "noatm", words: []string{"noatm", "atm", "ptm"}},
		{name: "flowmode", typ: 5, form: word, standard: "triple-isolate", words: []string{
			"flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate",
		}},
		{name: "overhead", typ: 6, form: overheadOrRaw, standard: "raw"},
		{name: "rtt", typ: 7, standard: "100000"},
		{name: "target", typ: 8, standard: "5000"},
		{name: "autorate-ingress", typ: 9, form: onOff, standard: "off"},
		{name: "memlimit", typ: 10, standard: "0"},
		{name: "nat", typ: cakeNAT, form: onOff, standard: "off"},
		{name: "wash", typ: 13, form: onOff, standard: "off"},
		{name: "mpu", typ: 14, standard: "0"},
		{name: "ingress", typ: 15, form: onOff, standard: "off"},
		{name: "ack-filter", typ: 16, form: word, standard: "no-ack-filter",
			words: []string{"no-ack-filter", "ack-filter", "ack-filter-aggressive"}},
		{name: "split-gso", typ: 17, form: onOff, standard: "on"},
		{name: "fwmark", typ: 18, standard: "0"},
	},
	// One bare u32 (struct tc_fifo_qopt), hence no attribute number. The default is the length of
	// the transmit queue.
	"pfifo": {{name: "limit"}},
	"bfifo": {{name: "limit"}},
}

const (
	cakePad = 1  // TCA_CAKE_PAD, which aligns the 64-bit attribute behind it
	cakeNAT = 11 // TCA_CAKE_NAT
	cakeRaw = 12 // TCA_CAKE_RAW, present when no overhead is counted

	fqDefaultRate = 6 // TCA_FQ_FLOW_DEFAULT_RATE, ignored with a line in the kernel's log since 3.13
)

// Kinds returns the supported kinds, sorted.
func Kinds() []string { return []string{"bfifo", "cake", "fq", "fq_codel", "pfifo"} }

// Parameters returns the parameters of a kind in the order of their attributes, or nil for an
// unsupported kind.
func Parameters(kind string) []string {
	var out []string
	for _, p := range kinds[kind] {
		out = append(out, p.name)
	}
	return out
}

// Words returns the values of a parameter that takes one of several words, or nil for other
// parameters.
func Words(kind, name string) []string {
	p, err := find(kind, name)
	if err != nil {
		return nil
	}
	return slices.Clone(p.words)
}

// Once reports whether a parameter can be set only on a new discipline, as the number of flows of
// fq_codel, which is the length of an array.
func Once(kind, name string) bool {
	p, err := find(kind, name)
	return err == nil && p.once
}

// find searches a list of at most sixteen entries, which keeps the order of the attributes for
// Parameters.
func find(kind, name string) (parameter, error) {
	for _, p := range kinds[kind] {
		if p.name == name {
			return p, nil
		}
	}
	return parameter{}, fmt.Errorf("%w: %s.%s", ErrUnknown, kind, name)
}

// text returns the value of an attribute as text.
func (p parameter) text(b []byte) (string, error) {
	width := 4
	switch p.form {
	case onOff8:
		width = 1
	case rate64:
		width = 8
	}
	if len(b) < width {
		return "", fmt.Errorf("attribute %d of %d bytes, want %d", p.typ, len(b), width)
	}
	switch p.form {
	case onOff8:
		return onOffText(b[0] != 0), nil
	case rate64:
		bytesPerSecond := binary.NativeEndian.Uint64(b)
		// No link has a rate above 2^61 bytes per second, and eight times that overflows.
		if bytesPerSecond > math.MaxInt64/8 {
			return "", fmt.Errorf("rate of %d bytes per second", bytesPerSecond)
		}
		return strconv.FormatUint(bytesPerSecond*8, 10), nil
	}
	// All others have 32 bits, including most switches: the dump functions of these kinds use
	// nla_put_u32.
	n := binary.NativeEndian.Uint32(b)
	switch p.form {
	case overheadOrRaw:
		return strconv.Itoa(int(int32(n))), nil
	case onOff:
		return onOffText(n != 0), nil
	case word:
		if int64(n) >= int64(len(p.words)) {
			return strconv.FormatUint(uint64(n), 10), nil // a mode of a later kernel
		}
		return p.words[n], nil
	case rate32:
		if n == math.MaxUint32 {
			return "0", nil
		}
		return strconv.FormatUint(uint64(n)*8, 10), nil
	case speed32:
		return strconv.FormatUint(uint64(n)*8, 10), nil
	case log2:
		if n > 31 {
			return "", fmt.Errorf("exponent %d", n)
		}
		return strconv.FormatUint(1<<n, 10), nil
	}
	return strconv.FormatUint(uint64(n), 10), nil
}

// onOffText writes switches as the rest of linerate does. tc(8) has two words for each (ecn and
// noecn).
func onOffText(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// bytes encodes the attribute that sets a value. It refuses values that the kernel would silently
// truncate or round to another meaning, and leaves ranges to the kernel.
func (p parameter) bytes(text string) ([]byte, error) {
	refuse := func(want string) ([]byte, error) { return nil, fmt.Errorf("%w: %q, want %s", ErrValue, text, want) }
	switch p.form {
	case onOff, onOff8:
		if text != "on" && text != "off" {
			return refuse("on or off")
		}
		on := uint32(0)
		if text == "on" {
			on = 1
		}
		if p.form == onOff8 {
			return []byte{byte(on)}, nil
		}
		return u32(on), nil
	case word:
		if i := slices.Index(p.words, text); i >= 0 {
			return u32(uint32(i)), nil
		}
		// A mode of a later kernel was read as a number and can be written back as one.
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < uint64(len(p.words)) {
			return refuse(fmt.Sprintf("one of %q", p.words))
		}
		return u32(uint32(n)), nil
	case overheadOrRaw:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return refuse("a number of bytes")
		}
		return u32(uint32(int32(n))), nil
	}
	// 63 bits suffice for every rate and cannot become negative in a document.
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return refuse("a number that is not negative")
	}
	switch p.form {
	case rate64:
		if n != 0 && n < 8 {
			return refuse("0 for no limit, or at least 8 bits per second")
		}
		return binary.NativeEndian.AppendUint64(nil, n/8), nil
	case rate32, speed32:
		// All ones mean "no limit", so the highest rate is one byte less.
		if n/8 >= math.MaxUint32 || p.form == rate32 && n != 0 && n < 8 {
			return refuse("bits per second from 8 to 34359738352")
		}
		if p.form == rate32 && n == 0 {
			return u32(math.MaxUint32), nil
		}
		return u32(uint32(n / 8)), nil
	case log2:
		// tc(8) silently rounds down to a power of two; an undo would then find a number other than
		// the requested one.
		if bits.OnesCount64(n) != 1 || n > math.MaxUint32 {
			return refuse("a power of two")
		}
		return u32(uint32(bits.TrailingZeros64(n))), nil
	}
	if n > math.MaxUint32 {
		return refuse("a number up to 4294967295")
	}
	if p.form == codel || p.form == never {
		return u32(codelMicroseconds(uint32(n))), nil
	}
	return u32(uint32(n)), nil
}

func u32(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// codelMicroseconds returns the number to send so that n is read back.
//
// CoDel counts in units of 2^10 ns, and the kernel truncates both on input and on output: sending
// 5000 reads back 4999, and sending that would read back 4998, so every undo would lose a
// microsecond. The function therefore returns the smallest number that reads back as n. One number
// in 43 has none and reads back one less, as it would in any case. Never is INT_MAX of these units
// (CODEL_DISABLED_THRESHOLD).
func codelMicroseconds(n uint32) uint32 {
	const unit, thousand = 1024, 1000
	if n == Never {
		n64 := (uint64(math.MaxInt32)*unit + thousand - 1) / thousand
		return uint32(n64)
	}
	units := (uint64(n)*thousand + unit - 1) / unit
	if units*unit/thousand != uint64(n) {
		return n
	}
	send := (units*unit + thousand - 1) / thousand
	if send > math.MaxUint32 {
		return n
	}
	return uint32(send)
}
