package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/host/sample"
)

// minGap is the shortest time without a reading that is told of: a restart of the hub after an
// upgrade is worth a word, a reading that came late is not.
const minGap = 10 * time.Second

// seenVersion is that of the form of seen.
const seenVersion = 1

// seen is what the follower remembers from one start to the next.
type seen struct {
	Boot string    `json:"boot_id,omitempty"`
	Time time.Time `json:"time"` // when it was last there
}

// Begin tells what happened while nobody was there: a restart of the host, and a gap since the last
// sample of the history (zero: not known) or since the follower was last there, whichever came
// later. It is called once, first.
func (f *Follower) Begin(lastSample time.Time) error {
	now := f.o.Now()
	before, err := f.recall()
	if err != nil {
		return err
	}
	if lastSample.After(before.Time) {
		before.Time = lastSample
	}
	boot, ago, err := f.o.Boot()
	if err != nil {
		return fmt.Errorf("follow this host: %w", err)
	}
	f.boot = boot
	restarted := before.Boot != "" && before.Boot != boot
	errs := []error{f.started(boot, now.Add(-ago), before)}
	// A clock that was set back makes the last time one to come: nothing can be said of a gap then.
	if length := now.Sub(before.Time); !before.Time.IsZero() && length >= minGap {
		why := "the recorder was not running"
		if restarted {
			why = "the host was restarted"
		}
		errs = append(errs, f.gap(before.Time, now, why))
	}
	errs = append(errs, f.resumeFindings(before.Time), f.remember(now))
	f.looked.noted = now
	return errors.Join(errs...)
}

// started tells when the host was started, once for each boot.
func (f *Follower) started(boot string, at time.Time, before seen) error {
	id := idOf("boot", boot)
	if _, ok := f.o.Store.Get(id); ok || boot == "" {
		return nil // the time would be another one by what clocks drift
	}
	title := "the host was started"
	if !before.Time.IsZero() && before.Time.Before(at) {
		title = fmt.Sprintf("the host was restarted; it was last seen %s before", span(at.Sub(before.Time)))
	}
	return f.putNew(timeline.Event{ID: id, Kind: timeline.Reboot, Time: ms(at), Severity: timeline.Severity("notice"),
		Title: title}, nil)
}

func (f *Follower) gap(from, to time.Time, why string) error {
	return f.putNew(timeline.Event{
		ID: fmt.Sprintf("gap-%d", from.Unix()), Kind: timeline.Gap, Time: ms(from), End: ms(to), Severity: "notice",
		Title: fmt.Sprintf("nothing recorded for %s: %s", span(to.Sub(from)), why),
	}, nil)
}

func (f *Follower) recall() (seen, error) {
	var s seen
	_, err := durable.Recall(f.o.FS, f.path(), seenVersion, &s)
	if errors.Is(err, durable.ErrForgotten) {
		return seen{}, nil // whoever has edited it: there is nothing to be remembered then
	}
	if err != nil {
		return seen{}, fmt.Errorf("follow this host: %w", err)
	}
	return s, nil
}

// remember writes down that the follower is there.
func (f *Follower) remember(now time.Time) error {
	return durable.Remember(f.o.FS, f.path(), seenVersion, seen{Boot: f.boot, Time: ms(now)})
}

// moment is a reading, by the clock on the wall and by the one that nobody sets.
type moment struct {
	wall time.Time
	boot time.Duration
}

// pause tells of a time without readings between two of them.
func (f *Follower) pause(r *sample.Reading) {
	before := f.last
	f.last = moment{r.Time, r.SinceBoot}
	if before.wall.IsZero() || r.SinceBoot < before.boot {
		return
	}
	wall, truly := r.Time.Sub(before.wall), r.SinceBoot-before.boot
	if wall < minGap {
		return
	}
	why := "the host was asleep, or too busy for it"
	if wall-truly > minGap/2 {
		why = fmt.Sprintf("the clock was set ahead by %s", span(wall-truly))
	}
	f.later(func() error { return f.gap(before.wall, r.Time, why) })
}
