package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
)

// guestPlayer plays cases in guests: one boot for all cases that need the same guest, and one
// command in it per case.
type guestPlayer[T any] struct {
	status   func(what string) // progress
	patience time.Duration     // for one run of a case
	args     func(runs int) []string
	read     func(document []byte) ([]T, error)
	unplayed func(c Case, run int, kernel, reason string, skipped bool) T
}

// guestPatience bounds a boot, and a verdict inside a guest. It is many times what either takes,
// because QEMU may get a fifth of a processor.
const guestPatience = 20 * time.Minute

// VerdictsInGuests plays cases of `lab matrix` in guests; status receives the present step.
func VerdictsInGuests(status func(what string)) Guest[report.MatrixCase] {
	return guestPlayer[report.MatrixCase]{
		status: status, patience: guestPatience, unplayed: Unplayed,
		args: func(runs int) []string { return []string{"lab", "matrix", "--runs", strconv.Itoa(runs)} },
		read: func(b []byte) ([]report.MatrixCase, error) {
			var d report.MatrixDocument
			err := json.Unmarshal(b, &d)
			return d.Cases, err
		},
	}
}

// TunesInGuests plays cases of `lab tune` in guests. budget and trials bound each tune. A case is
// two worlds, the tune and its proof, on an emulated processor.
func TunesInGuests(status func(what string), budget time.Duration, trials int) Guest[report.TuneMatrixCase] {
	return guestPlayer[report.TuneMatrixCase]{
		status: status, patience: 3*budget + guestPatience, unplayed: Untuned,
		args: func(runs int) []string {
			return []string{"lab", "tune", "--runs", strconv.Itoa(runs), "--budget", budget.String(), "--max-trials",
				strconv.Itoa(trials)}
		},
		read: func(b []byte) ([]report.TuneMatrixCase, error) {
			var d report.TuneMatrixDocument
			err := json.Unmarshal(b, &d)
			return d.Cases, err
		},
	}
}

// Play implements [Guest]. Without the guest the cases are skipped with the reason; a guest that
// dies fails the case that it was playing.
func (p guestPlayer[T]) Play(ctx context.Context, cases []Case, runs int, each func(T)) error {
	for _, group := range sameGuest(cases) {
		if err := p.group(ctx, group, runs, each); err != nil {
			return err
		}
	}
	return nil
}

// sameGuest groups cases by the guest that they need, in the order of the first case of each guest.
func sameGuest(cases []Case) (groups [][]Case) {
	place := make(map[string]int)
	for _, c := range cases {
		key := fmt.Sprintf("%+v", groundOf(c.Scenario.Guest))
		at, ok := place[key]
		if !ok {
			at = len(groups)
			place[key] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], c)
	}
	return groups
}

// groundOf returns the complete options of the guest that a scenario needs.
func groundOf(m scenario.Machine) guest.Options {
	o := guest.Options{CPUs: m.CPUs, MemoryBytes: m.MemoryBytes, Counted: m.Counted, Modules: m.Modules,
		Programs: m.Programs}
	for _, c := range m.Cards {
		o.Cards = append(o.Cards, guest.Card{Model: c.Model, Queues: c.Queues, Wire: c.Wire})
	}
	return complete(o)
}

// group plays cases that share a guest.
func (p guestPlayer[T]) group(ctx context.Context, cases []Case, runs int, each func(T)) error {
	var g *ground
	defer func() {
		if g != nil {
			_ = g.close() // the guest holds no data worth keeping
		}
	}()
	for _, c := range cases {
		if g == nil {
			p.status("booting a guest for " + c.Name())
			var err error
			if g, err = p.boot(ctx, c); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				each(p.unplayed(c, 1, "", err.Error(), true))
				continue
			}
		}
		p.status(c.Name() + " in a guest")
		played, err := p.play(ctx, g, c, runs)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, m := range played {
			each(m)
		}
		if err != nil {
			each(p.unplayed(c, len(played)+1, g.release(), err.Error(), false))
			_ = g.close()
			g = nil // the next case boots a new guest
		}
	}
	return nil
}

func (p guestPlayer[T]) boot(ctx context.Context, c Case) (*ground, error) {
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	return bootGround(ctx, groundOf(c.Scenario.Guest))
}

// play runs one case in the guest and reads its document.
func (p guestPlayer[T]) play(ctx context.Context, g *ground, c Case, runs int) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(runs)*p.patience)
	defer cancel()
	args := append(p.args(runs), "--inside", "--json", "--progress", "off", "--only",
		"^"+regexp.QuoteMeta(c.Scenario.Name)+"$")
	if c.Level != "" {
		args = append(args, "--level", string(c.Level))
	}
	var out, said bytes.Buffer
	status, err := g.linerate(ctx, &out, &said, args...)
	if err != nil {
		return nil, err
	}
	cases, err := p.read(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("linerate in the guest: exit status %d: %w: %s", status, err,
			strings.TrimSpace(said.String()))
	}
	if len(cases) == 0 {
		return nil, errors.New("linerate in the guest played no case")
	}
	return cases, nil
}

// RunInGuest boots the guest that a scenario needs and plays the whole scenario there. The stderr
// of the command in the guest goes to log. It returns the guest's document, or nil and the reason
// why this machine cannot boot the guest.
func RunInGuest(ctx context.Context, s scenario.Scenario, budget time.Duration, log io.Writer) (doc *report.LabDocument,
	reason string, err error) {
	// The guest's time may pass many times more slowly than real time.
	inner, cancel := context.WithTimeout(ctx, 10*budget+2*guestPatience)
	defer cancel()
	g, err := bootGround(inner, groundOf(s.Guest))
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, err.Error(), nil
	}
	defer g.close()
	var out, said bytes.Buffer
	status, err := g.linerate(inner, &out, io.MultiWriter(&said, log), "lab", "run", s.Name, "--inside", "--json",
		"--progress", "all", "--budget", budget.String())
	if err != nil {
		return nil, "", err
	}
	doc = &report.LabDocument{}
	if err := json.Unmarshal(out.Bytes(), doc); err != nil {
		return nil, "", fmt.Errorf("linerate in the guest: exit status %d: %w: %s", status, err,
			strings.TrimSpace(said.String()))
	}
	return doc, "", nil
}
