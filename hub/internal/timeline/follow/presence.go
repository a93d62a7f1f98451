package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/host/sample"
)

// minGap is the shortest time without readings that is an event: a restart of the hub for an
// upgrade is one, a late reading is not.
const minGap = 10 * time.Second

// seenVersion is the version of the format of seen.
const seenVersion = 1

// seen is what the follower stores for its next start.
type seen struct {
	Boot string    `json:"boot_id,omitempty"`
	Time time.Time `json:"time"` // when it last ran
}

// Begin puts what happened while the hub did not run: a reboot of the host, and a gap since the
// last sample of the history (zero: unknown) or since the follower last ran, whichever is later. It
// is called once, first.
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
	// If the clock was set back, the last time is in the future: the length of the gap is then
	// unknown.
	if length := now.Sub(before.Time); !before.Time.IsZero() && length >= minGap {
		why := "the hub did not run"
		if restarted {
			why = "the host was rebooted"
		}
		errs = append(errs, f.gap(before.Time, now, why))
	}
	errs = append(errs, f.resumeFindings(before.Time), f.remember(now))
	f.looked.noted = now
	return errors.Join(errs...)
}

// started puts the reboot of the host, once for each boot.
func (f *Follower) started(boot string, at time.Time, before seen) error {
	id := idOf("boot", boot)
	if _, ok := f.o.Store.Get(id); ok || boot == "" {
		return nil // clock drift would change the time
	}
	title := "the host was booted"
	if !before.Time.IsZero() && before.Time.Before(at) {
		title = fmt.Sprintf("the host was rebooted; the hub last saw it %s before", span(at.Sub(before.Time)))
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
		return seen{}, nil // the file was edited: ignore it
	}
	if err != nil {
		return seen{}, fmt.Errorf("follow this host: %w", err)
	}
	return s, nil
}

// remember records that the follower runs.
func (f *Follower) remember(now time.Time) error {
	return durable.Remember(f.o.FS, f.path(), seenVersion, seen{Boot: f.boot, Time: ms(now)})
}

// moment is the time of a reading, on the wall clock and on the monotonic clock.
type moment struct {
	wall time.Time
	boot time.Duration
}

// pause puts a gap between two readings.
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
	why := "the host was suspended, or too busy"
	if wall-truly > minGap/2 {
		why = fmt.Sprintf("the clock was set forward by %s", span(wall-truly))
	}
	f.later(func() error { return f.gap(before.wall, r.Time, why) })
}
