package tc

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/mdlayher/netlink"
)

// fifo reports whether the options of a kind are one number without an attribute around it.
func fifo(kind string) bool { return kind == "pfifo" || kind == "bfifo" }

// attributes splits the options of the other kinds. It clears the flag bits of each type, because
// some kernels set the bit "nested" inconsistently.
func attributes(options []byte) ([]netlink.Attribute, error) {
	all, err := netlink.UnmarshalAttributes(options)
	if err != nil {
		return nil, fmt.Errorf("options of a queueing discipline: %w", err)
	}
	for i, a := range all {
		all[i].Type = a.Type &^ (netlink.Nested | netlink.NetByteOrder)
	}
	return all, nil
}

// lookup returns the first attribute of a type. The kernel never repeats one.
func lookup(all []netlink.Attribute, typ uint16) ([]byte, bool) {
	i := slices.IndexFunc(all, func(a netlink.Attribute) bool { return a.Type == typ })
	if i < 0 {
		return nil, false
	}
	return all[i].Data, true
}

// Get reads one parameter from the options that the kernel reported. The error is ErrUnknown or
// ErrAbsent, or reports malformed options.
func Get(kind, name string, options []byte) (string, error) {
	p, err := find(kind, name)
	if err != nil {
		return "", err
	}
	if fifo(kind) {
		return p.text(options)
	}
	all, err := attributes(options)
	if err != nil {
		return "", err
	}
	return p.get(all)
}

// get handles the two parameters whose presence carries meaning: the kernel omits a threshold that
// is never reached, and cake without overhead sends an empty attribute beside a zero.
func (p parameter) get(all []netlink.Attribute) (string, error) {
	if _, raw := lookup(all, cakeRaw); raw && p.form == overheadOrRaw {
		return "raw", nil
	}
	b, ok := lookup(all, p.typ)
	switch {
	case !ok && p.form == never:
		return strconv.FormatUint(Never, 10), nil
	case !ok:
		return "", fmt.Errorf("%w: %s", ErrAbsent, p.name)
	}
	return p.text(b)
}

// Change encodes the options that set one parameter of a discipline and leave the others. The
// errors are ErrUnknown and ErrValue.
func Change(kind, name, value string) ([]byte, error) {
	p, err := find(kind, name)
	if err != nil {
		return nil, err
	}
	if fifo(kind) {
		return p.bytes(value)
	}
	a, err := p.attribute(value)
	if err != nil {
		return nil, err
	}
	return netlink.MarshalAttributes([]netlink.Attribute{a})
}

// attribute encodes one parameter. cake counts packets as they are unless an overhead is given. An
// overhead of 0 bytes differs from that: cake then counts from the network header on.
func (p parameter) attribute(value string) (netlink.Attribute, error) {
	if p.form == overheadOrRaw && value == "raw" {
		return netlink.Attribute{Type: cakeRaw, Data: u32(0)}, nil
	}
	b, err := p.bytes(value)
	return netlink.Attribute{Type: p.typ, Data: b}, err
}

// Whole encodes the options of a new discipline that equals the one with the reported options, with
// one parameter changed. An empty name changes none.
//
// Some reported options must not be sent back unchanged: times of CoDel would shrink, an obsolete
// attribute would fill the kernel log, and cake without connection tracking refuses even "nat off".
func Whole(kind string, options []byte, name, value string) ([]byte, error) {
	if _, known := kinds[kind]; !known {
		return nil, fmt.Errorf("%w: kind %s", ErrUnknown, kind)
	}
	if fifo(kind) {
		if name != "" {
			return Change(kind, name, value)
		}
		return slices.Clone(options), nil
	}
	all, err := attributes(options)
	if err != nil {
		return nil, err
	}
	// Unknown attributes remain: a later kernel accepts the attributes that it reports.
	out := slices.DeleteFunc(all, func(a netlink.Attribute) bool {
		off := len(a.Data) >= 4 && binary.NativeEndian.Uint32(a.Data) == 0
		return kind == "fq" && a.Type == fqDefaultRate || kind == "cake" &&
			(a.Type == cakePad || a.Type == cakeNAT && off)
	})
	for i, a := range out {
		for _, p := range kinds[kind] {
			if p.typ == a.Type && (p.form == codel || p.form == never) && len(a.Data) >= 4 {
				out[i] = netlink.Attribute{Type: a.Type,
					Data: u32(codelMicroseconds(binary.NativeEndian.Uint32(a.Data)))}
			}
		}
	}
	if name != "" {
		p, err := find(kind, name)
		if err != nil {
			return nil, err
		}
		a, err := p.attribute(value)
		if err != nil {
			return nil, err
		}
		// With both attributes cake uses raw, in either order.
		out = slices.DeleteFunc(out, func(x netlink.Attribute) bool {
			return x.Type == a.Type || p.form == overheadOrRaw && x.Type == cakeRaw
		})
		out = append(out, a)
	}
	for i, a := range out {
		out[i] = netlink.Attribute{Type: a.Type, Data: a.Data} // drops the length of the old data
	}
	return netlink.MarshalAttributes(out)
}

// Link has the properties that determine the defaults of some parameters. With zeros, those
// parameters are not judged.
type Link struct {
	MTUBytes   int
	TxQueueLen int // packets
}

// ethernetHeader is dev->hard_header_len of nearly every link with a queue. On a link with another
// length, a default looks like a custom value.
const ethernetHeader = 14

// standardOn returns the default of a parameter on a link. Several are multiples of psched_mtu(),
// which is the MTU plus the link's header.
func (p parameter) standardOn(kind string, link Link) string {
	packet := link.MTUBytes + ethernetHeader
	switch {
	case kind == "pfifo" && link.TxQueueLen > 0:
		return strconv.Itoa(link.TxQueueLen)
	case kind == "bfifo" && link.TxQueueLen > 0 && link.MTUBytes > 0:
		return strconv.Itoa(link.TxQueueLen * packet)
	case link.MTUBytes == 0:
		return p.standard
	case kind == "fq" && p.name == "quantum":
		return strconv.Itoa(2 * packet)
	case kind == "fq" && p.name == "initial_quantum":
		return strconv.Itoa(10 * packet)
	case kind == "fq_codel" && p.name == "quantum":
		return strconv.Itoa(packet)
	}
	return p.standard
}

// Custom lists the parameters whose value differs from the kernel's default for a new discipline on
// that link. It does not judge parameters whose default depends on the kernel's build or on
// hardware, nor unknown kinds.
func Custom(kind string, options []byte, link Link) ([]string, error) {
	var all []netlink.Attribute
	if kinds[kind] == nil {
		return nil, nil // some other kinds have options that are not attributes (pfifo_fast, mq)
	}
	if fifo(kind) {
		// as if it were attribute 0, the number of their parameter
		all = []netlink.Attribute{{Data: options}}
	} else {
		var err error
		if all, err = attributes(options); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, p := range kinds[kind] {
		want := p.standardOn(kind, link)
		if want == "" {
			continue
		}
		// A parameter that this kernel lacks cannot have been set.
		if v, err := p.get(all); err == nil && v != want {
			out = append(out, p.name)
		}
	}
	return out, nil
}
