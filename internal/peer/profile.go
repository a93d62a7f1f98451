package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/record"
	"github.com/linerate/linerate/internal/traffic"
)

// Bounds of a profile that a client asks for. It lasts no longer than a test may.
const (
	shortestProfile = 100 * time.Millisecond
	// exactTime is how long softirqs and lock waits are counted after the samples.
	exactTime = time.Second
	// mostStacks bounds the answer: about a megabyte.
	mostStacks = 4000
	// profileBound is the time beside the samples: reading the symbols, and sending the answer.
	profileBound = 15 * time.Second
)

// profileCall asks the far side to sample its processors.
type profileCall struct {
	Duration time.Duration `json:"duration_nanoseconds"`
	Exact    bool          `json:"exact,omitempty"` // count softirqs and lock waits for a second more
}

// Profile samples the processors of the far host for a time; exact adds what its kernel counts in
// the second after that. The result names no processes. An error that is fs.ErrPermission is the
// far kernel's refusal; a linerate that does not know the call refuses it as well.
func (c *Client) Profile(ctx context.Context, d time.Duration, exact bool) (*profile.Profile, error) {
	var p profile.Profile
	if err := c.call(ctx, msgProfile, profileCall{d, exact}, &p, d+profileBound); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("profile of %s: %w", c.target, err)
	}
	return &p, nil
}

// profile answers a client that asks where this host spends its time. It takes less than 1 % of
// each CPU, and one client at a time.
func (c *session) profile(ctx context.Context, raw json.RawMessage) (any, error) {
	var ask profileCall
	if err := decode(raw, &ask); err != nil {
		return nil, err
	}
	if longest := c.Limits.Filled().MaxDuration; ask.Duration < shortestProfile || ask.Duration > longest {
		return nil, fmt.Errorf("%w: a profile takes from %v to %v, as this host allows (--max-duration)",
			traffic.ErrBadSpec, shortestProfile, longest)
	}
	if !c.profiling.TryLock() {
		return nil, fmt.Errorf("%w: another client samples this host", ErrBusy)
	}
	defer c.profiling.Unlock()
	// A tune asks once for each segment; the symbols and the cost of a sample stay the same.
	if c.recorder == nil {
		var err error
		if c.recorder, err = record.Open(record.Options{Anonymous: true}); err != nil {
			return nil, err
		}
	}
	p, err := c.recorder.Run(ctx, ask.Duration)
	if err != nil {
		return nil, err
	}
	if ask.Exact && ctx.Err() == nil {
		record.Exact(ctx, p, exactTime, true)
	}
	p.Trim(mostStacks)
	return p, nil
}
