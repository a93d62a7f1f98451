package apply

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

const (
	// rounds is how often a change is repeated because packets were counted while it was made.
	rounds = 8
	// few is the number of such packets up to which another round may find a moment without any.
	few = 100
)

// mostPlan bounds a stored plan in bytes. A hundred thousand rules take 20 MB.
const mostPlan = 256 << 20

// ErrChanged reports rules that another program has changed since they were read.
var ErrChanged = errors.New("another program has changed the rules")

// Tables is the backend of the knobs of tables, in the network namespace of the calling thread. It
// knows the tables of the plans in a directory and of those that it was given.
type Tables struct {
	FS  durable.FS // nil: the operating system's
	Dir string     // of the plans
	// Step is called before each step of a change with its name, for tests; nil is none.
	Step func(string)

	apart bool // in a namespace where no other process changes rules
	mu    sync.Mutex
	plans map[knob.ID]*Plan
}

var _ knob.Backend = (*Tables)(nil)
var _ knob.Carrier = (*Tables)(nil)

func (b *Tables) fs() durable.FS {
	if b.FS != nil {
		return b.FS
	}
	return durable.OS()
}

func (b *Tables) step(name string) {
	if b.Step != nil {
		b.Step(name)
	}
}

// hold takes the locks that a change of a table needs.
func (b *Tables) hold(ctx context.Context, p *Plan) (*keeper, error) {
	return hold(ctx, p.Program == ruleset.IPTablesLegacy && !b.apart)
}

// file is where the plan of a table is kept.
func (b *Tables) file(id knob.ID) string {
	name := strings.NewReplacer("/", "+", ":", "+").Replace(string(id))
	return filepath.Join(b.Dir, name+".json.gz")
}

// Add makes a plan known, and stores it so that it survives power loss.
func (b *Tables) Add(p *Plan) error {
	data, err := pack(p)
	if err == nil {
		err = durable.MkdirAll(b.fs(), b.Dir, 0o700)
	}
	if err == nil {
		err = durable.Replace(b.fs(), b.file(p.ID()), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("store rules of table %s %s: %w", p.Family, p.Table, err)
	}
	b.remember(p)
	return nil
}

// Keep makes a plan known without storing it, for a look at what it would change.
func (b *Tables) Keep(p *Plan) { b.remember(p) }

func (b *Tables) remember(p *Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.plans == nil {
		b.plans = make(map[knob.ID]*Plan)
	}
	b.plans[p.ID()] = p
}

// plan returns the plan of a table. The error is fs.ErrNotExist if there is none.
func (b *Tables) plan(id knob.ID) (*Plan, error) {
	b.mu.Lock()
	p := b.plans[id]
	b.mu.Unlock()
	if p != nil {
		return p, nil
	}
	data, err := b.fs().ReadFile(b.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		// Not the knob is missing, which would end its change, but what undo needs.
		return nil, fmt.Errorf("the stored rules %s are gone: load the old rules again", b.file(id))
	} else if err != nil {
		return nil, err
	}
	if p, err = unpack(data); err != nil {
		return nil, err
	}
	if p.ID() != id {
		return nil, fmt.Errorf("plan of rules: it is of %s", p.ID())
	}
	b.remember(p)
	return p, nil
}

func pack(p *Plan) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	err := json.NewEncoder(z).Encode(p)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

func unpack(data []byte) (*Plan, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("plan of rules: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, mostPlan))
	if err != nil {
		return nil, fmt.Errorf("plan of rules: %w", err)
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("plan of rules: %w", err)
	}
	return &p, p.check()
}

// Carry implements knob.Carrier.
func (b *Tables) Carry(id knob.ID) ([]byte, error) {
	p, err := b.plan(id)
	if err != nil {
		return nil, err
	}
	return pack(p)
}

// Accept implements knob.Carrier.
func (b *Tables) Accept(id knob.ID, data []byte) error {
	p, err := unpack(data)
	if err == nil && p.ID() != id {
		err = fmt.Errorf("plan of rules: it is of %s", p.ID())
	}
	if err != nil {
		return err
	}
	b.remember(p)
	return nil
}

// Read implements knob.Backend: it returns the value of the form that is in force, or a digest of
// what is there instead.
func (b *Tables) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	v, err := b.value(ctx, id)
	if err != nil {
		return "", &knob.Error{Op: "read", Knob: id, Err: err}
	}
	return v, nil
}

func (b *Tables) value(ctx context.Context, id knob.ID) (knob.Value, error) {
	p, err := b.plan(id)
	if err != nil {
		return "", err
	}
	k, err := b.hold(ctx, p)
	if err != nil {
		return "", err
	}
	defer k.release()
	v, err := p.live(ctx, k)
	if err != nil {
		return "", err
	}
	if v.front == nil {
		return v.digest.Value, nil
	}
	return v.front.Value, nil
}

// CheckWrite implements knob.Checker.
func (b *Tables) CheckWrite(_ context.Context, id knob.ID, value knob.Value) error {
	p, err := b.plan(id)
	if err == nil {
		_, err = p.state(value)
	}
	if err != nil {
		return &knob.Error{Op: "check", Knob: id, Err: err}
	}
	return nil
}

func (p *Plan) state(v knob.Value) (*State, error) {
	for i := range p.States {
		if p.States[i].Value == v {
			return &p.States[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %s is neither the old nor the new rules of the table", knob.ErrInvalid, v)
}

// Write implements knob.Backend: it puts a form of the plan in force, with the counters.
func (b *Tables) Write(ctx context.Context, id knob.ID, value knob.Value) error {
	if err := b.write(ctx, id, value); err != nil {
		return &knob.Error{Op: "write", Knob: id, Err: err}
	}
	return nil
}

func (b *Tables) write(ctx context.Context, id knob.ID, value knob.Value) error {
	p, err := b.plan(id)
	if err != nil {
		return err
	}
	to, err := p.state(value)
	if err != nil {
		return err
	}
	k, err := b.hold(ctx, p)
	if err != nil {
		return err
	}
	defer k.release()
	for round := 0; ; {
		v, err := p.live(ctx, k)
		switch {
		case err != nil:
			return err
		case v.front == nil:
			return fmt.Errorf("%w: %s", ErrChanged, v.digest.Value)
		case v.back != nil:
			if err := b.finish(ctx, k, p); err != nil {
				return err
			}
			continue
		case v.front.Value == to.Value && !(repeatable(to) && round < rounds && worthwhile(v.carry, round)):
			return nil
		}
		round++
		if err := b.begin(ctx, k, p, v, to); err != nil {
			return err
		}
	}
}

// repeatable reports whether a form can be put in front of itself: names are given once.
func repeatable(s *State) bool { return len(s.Own)+len(s.Sets) == 0 }

// worthwhile reports whether another round may put carried packets into their counters. The first
// one always does so with those of earlier changes.
func worthwhile(carry []Count, round int) bool {
	var packets uint64
	for _, c := range carry {
		packets += c.Packets
	}
	return packets > 0 && (packets <= few || round == 0)
}

// begin puts rules in front of those in force.
func (b *Tables) begin(ctx context.Context, k *keeper, p *Plan, v *view, to *State) error {
	text := p.begin(v, to)
	b.step("begin")
	if g, err := generation(p.Program); err != nil || g != v.generation {
		return errors.Join(ErrChanged, err)
	}
	b.step("transaction")
	if err := k.load(ctx, p.Program, p.Family, text); err != nil {
		return err
	}
	b.step("begun")
	after, err := p.live(ctx, k)
	if err != nil {
		return err
	}
	if after.back != nil && after.front == to && after.back == v.front {
		return nil
	}
	if after.now == nil || len(after.fences) != len(to.Chains) {
		return fmt.Errorf("%w while new ones were put in front of them: look at table %s %s", ErrChanged, p.Family, p.Table)
	}
	if err := k.load(ctx, p.remover(), p.Family, p.takeBack(v, after, to)); err != nil {
		return errors.Join(ErrChanged, err)
	}
	return fmt.Errorf("%w while new ones were put in front of them, which are gone again", ErrChanged)
}

// remover is the program whose commands remove rules.
func (p *Plan) remover() ruleset.Program {
	if p.Program == ruleset.IPTablesNFT {
		return ruleset.NFT
	}
	return p.Program
}

// finish removes the rules behind the fence.
func (b *Tables) finish(ctx context.Context, k *keeper, p *Plan) error {
	// No packet is among the old rules after this, so their counters stand still.
	if err := settle(); err != nil {
		return err
	}
	b.step("settled")
	v, err := p.live(ctx, k)
	if err != nil {
		return err
	}
	if v.front == nil || v.back == nil {
		return fmt.Errorf("%w: %s", ErrChanged, v.digest.Value)
	}
	b.step("end")
	if err := k.load(ctx, p.remover(), p.Family, p.end(v)); err != nil {
		return err
	}
	b.step("ended")
	return nil
}

// Carried returns how many packets of a table are in no counter of its rules, but kept beside them
// until the next change.
func (b *Tables) Carried(ctx context.Context, id knob.ID) (packets uint64, counters int, err error) {
	p, err := b.plan(id)
	if err != nil {
		return 0, 0, err
	}
	k, err := b.hold(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	defer k.release()
	v, err := p.live(ctx, k)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range v.carry {
		if c != (Count{}) {
			packets, counters = packets+c.Packets, counters+1
		}
	}
	return packets, counters, nil
}

// live reads the table and compares it with the plan.
func (p *Plan) live(ctx context.Context, k *keeper) (*view, error) {
	for range readings {
		before, err := generation(p.Program)
		if err != nil {
			return nil, err
		}
		t, err := k.table(ctx, p.Program, p.Family, p.Table)
		if err != nil {
			return nil, err
		}
		after, err := generation(p.Program)
		if err != nil {
			return nil, err
		}
		if before != after {
			continue
		}
		v, err := p.look(t)
		if v != nil {
			v.generation = after
		}
		return v, err
	}
	return nil, fmt.Errorf("read table %s %s: it changed during each of %d readings", p.Family, p.Table, readings)
}

// readings is how often a table is read again because the rules changed meanwhile.
const readings = 5

// Host is a backend with the knobs of tables beside others.
type Host struct {
	knob.Backend
	Tables *Tables
}

// Read implements knob.Backend.
func (h Host) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	if id.Kind() == knob.KindFirewall {
		return h.Tables.Read(ctx, id)
	}
	return h.Backend.Read(ctx, id)
}

// Write implements knob.Backend.
func (h Host) Write(ctx context.Context, id knob.ID, v knob.Value) error {
	if id.Kind() == knob.KindFirewall {
		return h.Tables.Write(ctx, id, v)
	}
	return h.Backend.Write(ctx, id, v)
}

// CheckWrite implements knob.Checker.
func (h Host) CheckWrite(ctx context.Context, id knob.ID, v knob.Value) error {
	if id.Kind() == knob.KindFirewall {
		return h.Tables.CheckWrite(ctx, id, v)
	}
	if c, ok := h.Backend.(knob.Checker); ok {
		return c.CheckWrite(ctx, id, v)
	}
	return nil
}

// Carry implements knob.Carrier.
func (h Host) Carry(id knob.ID) ([]byte, error) {
	if id.Kind() == knob.KindFirewall {
		return h.Tables.Carry(id)
	}
	return nil, nil
}

// Unwrap returns the backend of all other knobs; see knob.As.
func (h Host) Unwrap() knob.Backend { return h.Backend }

// Accept implements knob.Carrier.
func (h Host) Accept(id knob.ID, data []byte) error {
	if id.Kind() == knob.KindFirewall {
		return h.Tables.Accept(id, data)
	}
	return fmt.Errorf("%s: %w", id, knob.ErrNotSupported)
}
