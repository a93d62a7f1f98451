package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// comeBack is how long cards may take to return from the namespace of a world that has ended: the
// kernel removes the namespace in the background.
const comeBack = time.Minute

// moveCards puts the two cards of a driver into two network namespaces, the card with the lower bus
// address into the first, and returns their names. It finds cards by driver and address: a card
// that comes back from a world gets another name if its name is taken.
func moveCards(ctx context.Context, driver string, spaces ...*os.File) (names [2]string, err error) {
	c, err := nl.Dial()
	if err != nil {
		return names, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, comeBack)
	defer cancel()
	type card struct{ name, bus string }
	var cards []card
	for {
		links, err := c.Links()
		if err != nil {
			return names, err
		}
		cards = cards[:0]
		for _, l := range links {
			// A device without a driver (lo) is not a card.
			if d, err := ethtool.New(c).Driver(l.Name); err == nil && d.Driver == driver {
				cards = append(cards, card{l.Name, d.Bus})
			}
		}
		if len(cards) == len(names) {
			break
		}
		select {
		case <-ctx.Done():
			return names, fmt.Errorf("%w: it has %d cards of the driver %s, want %d", ErrLacks, len(cards),
				driver, len(names))
		case <-time.After(50 * time.Millisecond):
		}
	}
	sorting.Func(cards, func(a, b card) int { return cmp.Compare(a.bus, b.bus) })
	for i := range cards {
		if cards[i].name, err = renewCard(cards[i].bus); err != nil {
			return names, err
		}
	}
	for i, card := range cards {
		// By a name that no host uses: the kernel's name for the card may be taken there.
		names[i] = "card" + strconv.Itoa(i)
		if err := renameDevice(card.name, names[i]); err != nil {
			return names, err
		}
		if err := c.MoveToNetNS(names[i], int(spaces[i].Fd())); err != nil {
			return names, err
		}
	}
	return names, nil
}

// carriers waits until the cards of the world have a link. Many settings make a driver restart its
// link, and a copper link needs seconds.
func (r *Running) carriers(ctx context.Context) error {
	if r.World.Card == "" {
		return nil
	}
	plan, err := planOf(r.World)
	if err != nil {
		return err
	}
	for _, hop := range plan.hops {
		if !hop.link {
			continue
		}
		for _, e := range hop.ends {
			if _, _, err := r.Host(e.host).agent.call(ctx,
				request{Configure: &configureRequest{Await: []string{e.device}}}); err != nil {
				return wrapHost(e.host, err)
			}
		}
	}
	return nil
}
