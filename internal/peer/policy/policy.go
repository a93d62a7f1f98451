package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
)

// DefaultPath is where the policy of a host is.
const DefaultPath = "/etc/linerate/policy.yaml"

// Policy is what one host allows a fleet.
type Policy struct {
	KillSwitch bool // no test and no change
	Tests      Tests
	Changes    Changes
}

// Tests is what the fleet may measure.
type Tests struct {
	MaxShareRatio float64 // of the link's rate that a load test may use; 0: no load tests
	// LinkRate is that of the link in bits per second; 0: what the NIC says. Many do not say one, such
	// as virtio, and for some it is more than the network behind them carries.
	LinkRate          float64
	MaxSecondsPerHour int // of load tests, in both roles
	Hours             Hours
	Peers             []string // "group:NAME", addresses and prefixes; empty: every host of the fleet
}

// AssumedRate is the rate of a link that neither the policy nor the NIC states, in bits per second:
// so little that nearly every link has it, and a share of it is at most that share of the link.
const AssumedRate = 100e6

// MostRate returns the rate that a load test may have, in bits per second. nic is the speed of the
// NIC, 0 where that is not known. A result of 0 means no limit, which only the whole link has.
func (t Tests) MostRate(nic float64) float64 {
	switch {
	case t.MaxShareRatio >= 1:
		return 0
	case t.LinkRate > 0:
		return t.LinkRate * t.MaxShareRatio
	case nic > 0:
		return nic * t.MaxShareRatio
	}
	return AssumedRate * t.MaxShareRatio
}

// Changes is what the fleet may change.
type Changes struct {
	Allow []knob.ID // patterns in which * stands for one part; empty: nothing
	Deny  []knob.ID // exceptions, which win
	// MaxClass is the highest class of disturbance.
	MaxClass    knob.Disturbance
	MaxDeadline time.Duration // of a trial
	Hours       Hours
	// Persist lets orders make a kept change survive a restart.
	Persist bool
	// Signatures is how many people must sign a change of class d0 or d1, SignaturesDisturbing one
	// of d2 and above, or one that is to survive a restart. Both are at least 1.
	Signatures           int
	SignaturesDisturbing int
}

// Hours is a window of the day in local time. The zero Hours is the whole day.
type Hours struct{ From, To int } // minutes after midnight; equal: the whole day

// Contains reports whether a moment lies in the window.
func (h Hours) Contains(t time.Time) bool {
	m := t.Hour()*60 + t.Minute()
	switch {
	case h.From == h.To:
		return true
	case h.From < h.To:
		return h.From <= m && m < h.To
	}
	return m >= h.From || m < h.To
}

func (h Hours) String() string {
	if h.From == h.To {
		return "any"
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.From/60, h.From%60, h.To/60, h.To%60)
}

// Default is the policy of a host without a file: it measures a little and changes nothing.
func Default() Policy {
	return Policy{
		Tests: Tests{MaxShareRatio: 0.1, MaxSecondsPerHour: 10},
		Changes: Changes{MaxClass: knob.DefaultClass, MaxDeadline: 5 * time.Minute, Signatures: 1,
			SignaturesDisturbing: 2},
	}
}

// The refusals. Each is a different answer, and an fs.ErrPermission.
var (
	ErrSwitchedOff  error = &refusal{"the kill switch of this host's policy is on"}
	ErrKnob         error = &refusal{"the policy of this host does not let the fleet change this knob"}
	ErrClass        error = &refusal{"the change disturbs traffic more than the policy of this host allows"}
	ErrHours        error = &refusal{"outside the hours of this host's policy"}
	ErrTrialTooLong error = &refusal{"the trial lasts longer than the policy of this host allows"}
	ErrSignatures   error = &refusal{"the policy of this host asks for more signatures"}
	ErrPersist      error = &refusal{"the policy of this host does not let changes of the fleet survive a restart"}
)

type refusal struct{ text string }

func (r *refusal) Error() string        { return r.text }
func (r *refusal) Is(target error) bool { return target == fs.ErrPermission }

// Request is one change that the fleet asks for.
type Request struct {
	Knob    knob.ID
	Trial   time.Duration // 0 for all but a try
	Signers int           // different people
	// Undo goes back to the value before. It needs one signature, at any hour and of any class, and
	// is refused only by the kill switch: going back is the safe side.
	Undo bool
	// Persist makes the change survive a restart.
	Persist bool
}

// Change returns nil for a change that the policy allows now. The knob's class is that of the
// built-in catalogue, whatever the request says; knobs that the catalogue lacks, keeps secret or
// only gives advice on are refused.
func (p Policy) Change(r Request, now time.Time) error {
	c := p.Changes
	d, known := knob.Catalogue().Lookup(r.Knob)
	switch {
	case p.KillSwitch:
		return ErrSwitchedOff
	case r.Undo:
		if r.Signers < 1 {
			return ErrSignatures
		}
		return nil
	case !known || d.Secret || d.Advise:
		return fmt.Errorf("%s: %w: not among the knobs that others may change", r.Knob, ErrKnob)
	case !c.allows(r.Knob):
		return fmt.Errorf("%s: %w", r.Knob, ErrKnob)
	case d.Disturbance > c.MaxClass:
		return fmt.Errorf("%s: %w: %s, at most %s", r.Knob, ErrClass, d.Disturbance, c.MaxClass)
	case !c.Hours.Contains(now):
		return fmt.Errorf("%s: %w: %s", r.Knob, ErrHours, c.Hours)
	case r.Trial > c.MaxDeadline:
		return fmt.Errorf("%s: %w: %v, at most %v", r.Knob, ErrTrialTooLong, r.Trial, c.MaxDeadline)
	}
	if r.Persist && !c.Persist {
		return fmt.Errorf("%s: %w", r.Knob, ErrPersist)
	}
	need := c.Needs(d.Disturbance)
	if r.Persist {
		need = c.NeedsPersisting()
	}
	if r.Signers < need {
		return fmt.Errorf("%s: %w: %d, not %d", r.Knob, ErrSignatures, need, r.Signers)
	}
	return nil
}

// Needs is how many people must sign a change of a class.
func (c Changes) Needs(class knob.Disturbance) int {
	if class > knob.DisturbsNewSockets {
		return max(c.SignaturesDisturbing, c.Signatures, 1)
	}
	return max(c.Signatures, 1)
}

// NeedsPersisting is how many people must sign that a change survives a restart, whatever its
// class: a restart is no way back from it any more.
func (c Changes) NeedsPersisting() int { return max(c.SignaturesDisturbing, c.Signatures, 1) }

func (c Changes) allows(id knob.ID) bool {
	allowed := false
	for _, p := range c.Allow {
		allowed = allowed || fits(id, p)
	}
	for _, p := range c.Deny {
		allowed = allowed && !fits(id, p)
	}
	return allowed
}

// fits compares a knob with a pattern in which * stands for any text of one part, or, at the end of
// a sysctl's pattern, for all parts that follow.
func fits(id, pattern knob.ID) bool {
	if id.Fits(pattern) {
		return true
	}
	start, all := strings.CutSuffix(string(pattern), ".*")
	return all && !strings.Contains(start, "*") && strings.HasPrefix(string(id), start+".")
}

// Peer reports whether the policy lets a host be the other end of a test, by its address and its
// groups.
func (t Tests) Peer(address netip.Addr, groups []string) bool {
	if len(t.Peers) == 0 {
		return true
	}
	for _, p := range t.Peers {
		if group, ok := strings.CutPrefix(p, "group:"); ok {
			for _, g := range groups {
				if g == group {
					return true
				}
			}
		} else if prefix, err := prefixOf(p); err == nil && prefix.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}

func prefixOf(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Prefix(a.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && p != p.Masked() {
		err = fmt.Errorf("%q: want %s", s, p.Masked())
	}
	return p, err
}

// Read returns the policy in a file, or Default where no file exists. A file that another user can
// change, or that is not in the format, is an error, and then the host lets the fleet do nothing.
func Read(fsys durable.FS, path string) (Policy, error) {
	data, err := ReadTrusted(fsys, path, maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Policy{}, fmt.Errorf("read policy: %w", err)
	}
	p, err := Parse(data)
	if err != nil {
		return Policy{}, fmt.Errorf("read policy %s: %w", path, err)
	}
	return p, nil
}

// ReadTrusted returns the content of a file of at most max bytes that only this process's user and
// root can change. Errors: fs.ErrNotExist, and a *durable.TrustError for a file of others.
func ReadTrusted(fsys durable.FS, path string, max int64) ([]byte, error) {
	info, err := fsys.Stat(path)
	if err != nil {
		return nil, err
	}
	if disk, ok := fsys.(durable.Truster); ok {
		if err := disk.Trusted(path); err != nil {
			return nil, err
		}
	}
	if !info.Mode().IsRegular() || info.Size() > max {
		return nil, fmt.Errorf("%s: want a file of at most %d bytes", path, max)
	}
	return fsys.ReadFile(path)
}
