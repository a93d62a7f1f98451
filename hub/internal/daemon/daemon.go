package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/alert"
	"github.com/linerate/linerate/hub/internal/fleet/desk"
	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/record/remote"
	"github.com/linerate/linerate/hub/internal/schedule"
	"github.com/linerate/linerate/hub/internal/switches"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/hub/internal/timeline/follow"
	"github.com/linerate/linerate/hub/internal/web"
	"github.com/linerate/linerate/hub/internal/web/api"
	"github.com/linerate/linerate/hub/internal/web/page"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/traffic/lease"
)

// Options are what a configuration file does not have.
type Options struct {
	Logger *slog.Logger
	Notify string           // socket of the service manager (sd_notify(3)); empty: no service manager
	Ready  func(url string) // called when the page answers; may be nil
}

// daemon is a running hub.
type daemon struct {
	config  Config
	log     *slog.Logger
	started time.Time
	board   *board
	store   *record.Store
	events  *timeline.Store

	scheduler *schedule.Scheduler
	watcher   *alert.Watcher
	follower  *follow.Follower
	switches  *switches.Poller
	writers   []*remote.Writer
}

// Memory: the history of 2000 series needs some 60 MB, most of it for the chunks of the last half
// hour. The garbage collector runs more often than by default, and near the limit as often as it
// must: a hub that shares a host with its workload spends CPU time rather than memory.
const (
	collectAt   = 50        // percent; runtime/debug.SetGCPercent
	memoryLimit = 120 << 20 // bytes; runtime/debug.SetMemoryLimit
)

// mostPoints is the number of points of one series in an answer: Prometheus allows 11 000 steps,
// which have one point more.
const mostPoints = 11_001

// Run keeps and shows the history until the context ends, which is not an error.
func Run(ctx context.Context, c Config, o Options) error {
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(memoryLimit)
	if c.Fleet.on() {
		debug.SetMemoryLimit(fleetMemoryLimit)
	}
	d := &daemon{config: c, log: o.Logger, started: time.Now(), board: newBoard()}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("make the directory of the history: %w", err)
	}
	// The address first: an address in use is the most frequent error, and at this point nothing is
	// open yet.
	server, err := d.listen()
	if err != nil {
		return err
	}
	served := false
	defer func() {
		if !served {
			_ = server.Close()
		}
	}()
	if d.events, err = timeline.Open(timeline.Options{Dir: filepath.Join(c.Data, "events"),
		KeepFor: c.EventRetention.Duration()}); err != nil {
		return err
	}
	defer d.events.Close()
	if d.store, err = record.Open(record.Options{
		Dir: filepath.Join(c.Data, "history"), Host: c.Host, Retention: c.Retention.Duration(),
		MaxBytes: int64(c.MaxSize),
		Queries:  record.Bounds{Points: mostPoints}, Logger: slog.New(atLeast{d.log.Handler(), slog.LevelWarn}),
	}); err != nil {
		return err
	}
	defer d.store.Close()
	defer d.closeWriters()
	if err := d.prepare(server.PublicURL()); err != nil {
		return err
	}
	sampler, err := sample.New(sample.Options{})
	if err != nil {
		return err
	}
	defer sampler.Close()
	var fleet *desk.Desk
	if c.Fleet.on() {
		if fleet, err = d.openFleet(); err != nil {
			return err
		}
		defer fleet.Close()
	}

	// A part that ends with an error ends all parts.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop(nil)
	start := func(part func(context.Context)) { parts.Go(func() { part(ctx) }) }
	start(func(ctx context.Context) { d.sampleHost(ctx, sampler) })
	start(d.sampleSelf)
	start(d.sampleRules)
	start(d.judgeHost)
	start(d.scheduler.Run)
	start(d.watcher.Run)
	start(d.followHost)
	start(d.switches.Run)
	if fleet != nil {
		parts.Go(func() {
			if err := fleet.Run(ctx); err != nil {
				stop(err)
			}
		})
	}

	handler := d.handler(fleet)
	served = true
	parts.Go(func() {
		if err := server.Serve(ctx, handler); err != nil {
			stop(err)
		}
	})
	d.log.Info("the page is at "+server.URL(), "data", c.Data, "retention", c.Retention.String(), "certificate",
		server.Fingerprint())
	if err := notify(o.Notify, "READY=1"); err != nil {
		d.log.Warn(err.Error())
	}
	if o.Ready != nil {
		o.Ready(server.URL())
	}
	<-ctx.Done()
	if err := notify(o.Notify, "STOPPING=1"); err != nil {
		d.log.Warn(err.Error())
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// prepare makes the parts that measure, watch and forward.
func (d *daemon) prepare(url string) error {
	c := d.config
	var err error
	if d.scheduler, err = schedule.New(schedule.Options{
		Schedules: c.Schedules, Host: c.Host, Version: version, States: []string{c.State},
		Dir: filepath.Join(c.Data, "schedules"), Log: d.log,
		Append: d.measured, Put: d.events.Put, Busy: d.busy, Lease: &lease.Lease{},
	}); err != nil {
		return err
	}
	d.openSwitches()
	rules, err := alert.Rules(c.Alerts, c.RuleFiles...)
	if err != nil {
		return err
	}
	if d.watcher, err = alert.New(alert.Options{
		Rules: rules, Query: d.store.Vector, Findings: d.verdicts, Status: d.store.Status, Put: d.events.Put,
		Open: func() []timeline.Event {
			alerts, _ := d.events.Between(time.Now(), time.Time{},
				timeline.Query{Kinds: []timeline.Kind{timeline.Alert}, Limit: timeline.MaxLimit})
			return alerts
		},
		Host: c.Host, URL: url, Dir: filepath.Join(c.Data, "alerts"), Log: d.log,
	}); err != nil {
		return err
	}
	for _, w := range c.RemoteWrites {
		writer, err := remote.New(w.options(c.Host, d.log))
		if err != nil {
			return err
		}
		d.writers = append(d.writers, writer)
	}
	d.follower, err = follow.New(follow.Options{
		Host: c.Host, Store: d.events, Source: newHostSource(c), Dir: filepath.Join(c.Data, "follow"), Version: version,
	})
	return err
}

// listen binds the address of the page.
func (d *daemon) listen() (*web.Server, error) {
	c := d.config
	password := c.passwordFile()
	if c.PasswordFile == "" {
		if _, err := os.Stat(password); errors.Is(err, fs.ErrNotExist) {
			password = ""
		}
	}
	server, err := web.Listen(web.Options{
		Address: c.Listen, DataDir: c.Data, PasswordFile: password, ClientCA: c.ClientCA,
		Certificate: c.Certificate, Key: c.Key,
		Names: c.Names, Open: []string{"/healthz"}, Log: d.log,
	})
	if err != nil && password == "" && c.ClientCA == "" && strings.Contains(err.Error(), "set a password") {
		return nil, hinted{err, "linerate-hub password --data " + c.Data}
	}
	return server, err
}

// atLeast drops log records below a level: the database logs every file that it opens.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (a atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= a.level && a.Handler.Enabled(ctx, l)
}

func (a atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{a.Handler.WithAttrs(attrs), a.level}
}

func (a atLeast) WithGroup(name string) slog.Handler {
	return atLeast{a.Handler.WithGroup(name), a.level}
}

// hinted is an error with a hint.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint returns what the user can do next.
func (h hinted) Hint() string { return h.hint }

// handler returns what answers at the page's address.
func (d *daemon) handler(fleet *desk.Desk) http.Handler {
	o := api.Options{
		Host: d.config.Host, Version: version, Store: d.store, Readings: d.board.readings, Every: interval,
		Timeline: d.events,
		Status:   d.status, Hosts: d.hosts, Findings: d.findings, Switches: d.switches.Switches,
		Matrix: d.scheduler.Matrix, Alerts: d.watcher.Active,
		Log: d.log, Metrics: AllMetrics(),
	}
	if fleet != nil {
		o.Fleet = fleet
	}
	answers := api.New(o)
	mux := http.NewServeMux()
	mux.Handle("/", page.Handler())
	for _, path := range []string{"/api/", "/metrics", "/healthz"} {
		mux.Handle(path, answers)
	}
	return mux
}
