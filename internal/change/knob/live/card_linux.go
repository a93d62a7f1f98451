package live

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// cardKnob reads and writes the settings of one group that are not plain numbers of a driver. Key
// is the text after the dot.
type cardKnob struct {
	read  func(c ethtool.Client, name, key string) (knob.Value, error)
	write func(c ethtool.Client, name, key string, v knob.Value) error
}

// cardKnobs by the group before the dot.
var cardKnobs = map[string]cardKnob{
	"rss":     {readRSS, writeRSS},
	"rxhash":  {readHashFields, writeHashFields},
	"fec":     {readFEC, writeFEC},
	"link":    {readMode, writeMode},
	"tunable": {readTunable, writeTunable},
}

// errNoKey is a key that no driver can have.
func errNoKey(group, key string) error {
	return fmt.Errorf("%w: no driver has a %s.%s", fs.ErrNotExist, group, key)
}

// refusedByDriver adds the accepted values to the kernel's message, and turns "nothing changed"
// into "not supported": the driver accepted the request and ignored it.
func refusedByDriver(v knob.Value, allowed string, err error) error {
	switch {
	case errors.Is(err, nl.ErrNotApplied):
		return fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ERANGE):
		return &knob.RangeError{Value: v, Allowed: allowed, Err: err}
	}
	return err
}

func readRSS(c ethtool.Client, name, key string) (knob.Value, error) {
	if key == "key" {
		b, err := c.RSSKey(name)
		return knob.Value(hex.EncodeToString(b)), err
	}
	if key != "indirection" && key != "function" {
		return "", errNoKey("rss", key)
	}
	r, err := c.RSS(name)
	switch {
	case err != nil:
		return "", err
	case key == "indirection" && len(r.Indirection) > 0:
		return indirectionText(r.Indirection), nil
	case key == "function" && r.HashFunction != "":
		return knob.Value(r.HashFunction), nil
	}
	return "", fmt.Errorf("%w: the driver does not report %s", knob.ErrNotSupported, key)
}

func writeRSS(c ethtool.Client, name, key string, v knob.Value) error {
	switch key {
	case "key":
		b, err := hex.DecodeString(strings.ReplaceAll(string(v), ":", ""))
		if err != nil {
			return &knob.RangeError{Value: v, Allowed: "hexadecimal digits, as many as the present key has", Err: err}
		}
		return refusedByDriver(v, "a key as long as the present one, in hexadecimal digits", c.SetRSSKey(name, b))
	case "function":
		return refusedByDriver(v, "toeplitz, xor or crc32, as far as the card has it",
			c.SetRSSFunction(name, string(v)))
	case "indirection":
		r, err := c.RSS(name)
		if err != nil {
			return err
		}
		table, err := indirectionTable(string(v), len(r.Indirection))
		if err != nil {
			return &knob.RangeError{Value: v, Allowed: indirectionForms, Err: err}
		}
		if table != nil && resetTo(c, name, table) {
			return nil
		}
		return refusedByDriver(v, "queues that the card has, each entry of the table naming one",
			c.SetRSSIndirection(name, table))
	}
	return errNoKey("rss", key)
}

// resetTo gives a NIC the driver's own table if that is the wanted one. The kernel remembers a
// table that was set (IFF_RXFH_CONFIGURED): it no longer follows the number of channels, and
// fewer channels are refused. So the undo of a table must not leave one that was set.
func resetTo(c ethtool.Client, name string, table []uint32) bool {
	channels, err := c.Channels(name)
	queues := channels.Combined + channels.Rx
	// What drivers begin with (ethtool_rxfh_indir_default). Others are written as they are.
	if err != nil || queues == 0 || !slices.Equal(table, equalTable(len(table), queues, 0)) {
		return false
	}
	if c.SetRSSIndirection(name, nil) != nil {
		return false
	}
	r, err := c.RSS(name)
	return err == nil && slices.Equal(r.Indirection, table)
}

// indirectionForms are the notations of a table, in the words of ethtool(8) -X.
const indirectionForms = "equal N, equal N start M, weight W0 W1 …, default, " +
	"or the queue of each entry parted by commas"

// indirectionText returns a table in the shortest words that produce the same table.
func indirectionText(table []uint32) knob.Value {
	start := slices.Min(table)
	n := slices.Max(table) - start + 1
	if uint64(n) <= uint64(len(table)) && slices.Equal(equalTable(len(table), n, start), table) {
		if start == 0 {
			return knob.Value(fmt.Sprintf("equal %d", n))
		}
		return knob.Value(fmt.Sprintf("equal %d start %d", n, start))
	}
	texts := make([]string, len(table))
	for i, q := range table {
		texts[i] = strconv.FormatUint(uint64(q), 10)
	}
	return knob.Value(strings.Join(texts, ","))
}

// equalTable assigns the queues in turn.
func equalTable(size int, n, start uint32) []uint32 {
	out := make([]uint32, size)
	for i := range out {
		out[i] = start + uint32(i)%n
	}
	return out
}

// indirectionTable returns the table of that size for the words; nil means the driver's own.
func indirectionTable(s string, size int) ([]uint32, error) {
	words := strings.Fields(s)
	numbers := func(texts []string) (out []uint32, err error) {
		for _, text := range texts {
			n, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return nil, err
			}
			out = append(out, uint32(n))
		}
		return out, nil
	}
	switch {
	case size == 0:
		return nil, errors.New("the driver has no table")
	case s == "default":
		return nil, nil
	case len(words) == 2 && words[0] == "equal", len(words) == 4 && words[0] == "equal" && words[2] == "start":
		n, err := numbers([]string{words[1], "0"})
		if err == nil && len(words) == 4 {
			n, err = numbers([]string{words[1], words[3]})
		}
		if err != nil || n[0] == 0 || int(n[0]) > size {
			return nil, errors.Join(err, fmt.Errorf("equal needs 1 to %d queues", size))
		}
		return equalTable(size, n[0], n[1]), nil
	case len(words) > 1 && words[0] == "weight":
		weights, err := numbers(words[1:])
		if err != nil {
			return nil, err
		}
		return weightTable(size, weights)
	}
	table, err := numbers(strings.Split(s, ","))
	if err == nil && len(table) != size {
		err = fmt.Errorf("%d entries, and the table has %d", len(table), size)
	}
	return table, err
}

// weightTable returns a table in which each queue has a run of entries in proportion to its weight.
// Every entry goes to the queue in whose share its start lies, so that rounding never leaves one
// over.
func weightTable(size int, weights []uint32) ([]uint32, error) {
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	if sum == 0 {
		return nil, errors.New("no weight is above 0")
	}
	table := make([]uint32, size)
	queue, reached := 0, uint64(weights[0])
	for i := range table {
		for uint64(i)*sum >= reached*uint64(size) {
			queue++
			reached += uint64(weights[queue])
		}
		table[i] = uint32(queue)
	}
	return table, nil
}

func readHashFields(c ethtool.Client, name, key string) (knob.Value, error) {
	fields, err := c.HashFields(name, key)
	if err == nil && fields == "" {
		fields = noFields
	}
	return knob.Value(fields), err
}

// noFields is the value of a flow that is not hashed.
const noFields = "none"

func writeHashFields(c ethtool.Client, name, key string, v knob.Value) error {
	fields := string(v)
	if fields == noFields {
		fields = ""
	}
	return refusedByDriver(v, "letters of mvtsdfnr that the card can hash together: sd or sdfn, mostly",
		c.SetHashFields(name, key, fields))
}

// readFEC returns the configured modes; auto is one of them.
func readFEC(c ethtool.Client, name, _ string) (knob.Value, error) {
	f, err := c.FEC(name)
	if err != nil {
		return "", err
	}
	words := slices.Clone(f.Modes)
	if f.Auto {
		words = append([]string{"auto"}, words...)
	}
	if len(words) == 0 {
		return "", fmt.Errorf("%w: no mode is configured", knob.ErrNotSupported)
	}
	return knob.Value(strings.Join(words, ",")), nil
}

func writeFEC(c ethtool.Client, name, _ string, v knob.Value) error {
	modes := strings.Split(string(v), ",")
	auto := slices.Contains(modes, "auto")
	modes = slices.DeleteFunc(modes, func(m string) bool { return m == "auto" })
	return refusedByDriver(v, "auto, off, rs, baser, llrs, or several parted by commas, as far as the link has them",
		c.SetFEC(name, auto, modes))
}

// readMode returns how the link chooses its speed: "auto" when it offers every mode, "auto
// MODE,MODE" when it offers some, "100/full" when it is forced.
//
// It is one knob and not three (autoneg, speed, duplex): one of the three alone is often an
// impossible state of a NIC, and most drivers forget what a forced link would offer in a
// negotiation.
func readMode(c ethtool.Client, name, key string) (knob.Value, error) {
	if key != "mode" {
		return "", errNoKey("link", key)
	}
	m, err := c.LinkModes(name)
	if err != nil {
		return "", err
	}
	supported, offered := m.Speeds()
	switch {
	case len(supported) == 0:
		return "", fmt.Errorf("%w: the device has no medium and no link modes", knob.ErrNotSupported)
	case m.Autoneg && slices.Equal(supported, offered):
		return "auto", nil
	case m.Autoneg && len(offered) == 0:
		return "auto none", nil
	case m.Autoneg:
		return knob.Value("auto " + strings.Join(offered, ",")), nil
	}
	speed, duplex, err := c.LinkMode(name)
	switch {
	case err != nil:
		return "", err
	case speed == 0 || duplex == "":
		return "", fmt.Errorf("%w: the mode is forced, and the driver reports it only while the link is up",
			knob.ErrNotSupported)
	}
	const mega = 1e6
	return knob.Value(strconv.FormatFloat(speed/mega, 'f', -1, 64) + "/" + duplex), nil
}

func writeMode(c ethtool.Client, name, key string, v knob.Value) error {
	if key != "mode" {
		return errNoKey("link", key)
	}
	const allowed = "auto, auto with modes of the card parted by commas, " +
		"or a speed in megabits per second that can be forced, with its duplex: 100/full"
	var want ethtool.LinkMode
	if modes, ok := strings.CutPrefix(string(v), "auto"); ok {
		m, err := c.LinkModes(name)
		if err != nil {
			return err
		}
		want.Autoneg = true
		want.Modes, _ = m.Speeds()
		switch modes = strings.TrimSpace(modes); modes {
		case "":
		case "none":
			want.Modes = nil
		default:
			want.Modes = strings.Split(modes, ",")
		}
	} else {
		speed, duplex, _ := strings.Cut(string(v), "/")
		n, err := strconv.ParseUint(speed, 10, 31)
		if err != nil || duplex != "half" && duplex != "full" {
			return &knob.RangeError{Value: v, Allowed: allowed}
		}
		want.SpeedMegabits, want.Duplex = uint32(n), duplex
	}
	if want.Autoneg {
		return refusedByDriver(v, allowed, c.SetLinkMode(name, want))
	}
	return forceMode(c, name, v, want, func(err error) error { return refusedByDriver(v, allowed, err) })
}

const (
	// linkPatience is how long a link may take to come up in a forced mode: drivers check every two
	// seconds, and training takes one or two.
	linkPatience = 8 * time.Second
	linkPoll     = 50 * time.Millisecond
)

// checkMode refuses to force a link that is down: whether it comes up could not be checked.
// Some cards report a speed while their interface is down, so the carrier decides.
func checkMode(name string, v knob.Value) error {
	link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
	if err != nil || link.Carrier || strings.HasPrefix(string(v), "auto") {
		return err
	}
	return fmt.Errorf("%w: the link is down, and whether it would come up so cannot be seen", knob.ErrNotSupported)
}

// forceMode waits until the link is up with the mode, and puts the old one back when it stays down.
//
// A forced mode is the one setting here that disconnects a host permanently when the other end does
// not follow; and until the link is up, the driver reports no mode to read back. A link that was
// down before keeps the mode: this is then the undo of what took it down.
func forceMode(c ethtool.Client, name string, v knob.Value, want ethtool.LinkMode, refused func(error) error) error {
	before, err := readMode(c, name, "mode")
	if err == nil && before == v {
		return nil
	}
	up := err == nil && checkMode(name, v) == nil
	if err := c.SetLinkMode(name, want); err != nil {
		return refused(err)
	}
	for deadline := time.Now().Add(linkPatience); time.Now().Before(deadline); time.Sleep(linkPoll) {
		link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
		if err != nil {
			return err
		}
		if speed, _, err := c.LinkMode(name); err != nil {
			return err
		} else if link.Carrier && speed != 0 {
			return nil
		}
	}
	err = fmt.Errorf("%w: the link did not come up with %s within %s", knob.ErrNotSupported, v, linkPatience)
	if !up {
		return err
	}
	return errors.Join(fmt.Errorf("%w; it has its old mode again", err), writeMode(c, name, "mode", before))
}

func readTunable(c ethtool.Client, name, key string) (knob.Value, error) {
	n, err := c.Tunable(name, key)
	return knob.Value(strconv.FormatUint(uint64(n), 10)), err
}

func writeTunable(c ethtool.Client, name, key string, v knob.Value) error {
	n, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil {
		return &knob.RangeError{Value: v, Allowed: "an integer from 0 to 4294967295"}
	}
	return refusedByDriver(v, "a number that this driver takes", c.SetTunable(name, key, uint32(n)))
}

// ringWord reports whether a key belongs to the ring settings that are not lengths.
func ringWord(key string) bool { return key != "rx" && key != "tx" }

// readRingWord returns a word or a number. If the kernel does not report it, the driver lacks it,
// or the kernel is older.
func readRingWord(c ethtool.Client, name, key string) (knob.Value, error) {
	parameters, err := c.RingParameters(name)
	if err != nil {
		return "", err
	}
	n, ok := parameters[key]
	_, known := knob.Catalogue().Lookup(knob.ID(knob.KindEthtool + ":" + name + "/ring." + key))
	switch {
	case !ok && known:
		return "", fmt.Errorf("%w: the driver has no %s, or the kernel does not report it", knob.ErrNotSupported, key)
	case !ok:
		return "", errNoKey("ring", key)
	case key == "tx-push" || key == "rx-push":
		return onOff(n != 0), nil
	case key == "tcp-data-split":
		return onOff(n == dataSplitOn), nil
	}
	return knob.Value(strconv.FormatUint(uint64(n), 10)), nil
}

// dataSplitOn and its counterpart are ETHTOOL_TCP_DATA_SPLIT_ENABLED and _DISABLED; 0 means not
// reported.
const (
	dataSplitOff = 1
	dataSplitOn  = 2
)

func writeRingWord(c ethtool.Client, name, key string, v knob.Value) error {
	if key == "tx-push" || key == "rx-push" || key == "tcp-data-split" {
		return writeSwitch(v, func(on bool) error {
			n := uint32(0)
			switch {
			case on && key == "tcp-data-split":
				n = dataSplitOn
			case key == "tcp-data-split":
				n = dataSplitOff
			case on:
				n = 1
			}
			return c.SetRing(name, key, n)
		})
	}
	n, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil {
		return &knob.RangeError{Value: v, Allowed: "an integer from 0 to 4294967295"}
	}
	return refusedByDriver(v, "a number that this driver takes", c.SetRing(name, key, uint32(n)))
}
