package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/wire"
)

// live is a scheduler against real targets, one run at a time.
type live struct {
	t      *testing.T
	s      *Scheduler
	events []timeline.Event
	doc    []byte
	points []sample.Point
}

func newLive(t *testing.T, configs ...Config) *live {
	t.Helper()
	l := &live{t: t}
	var err error
	l.s, err = New(Options{
		Schedules: configs, Host: "near", Version: "test", FS: durable.NewMem(),
		Put:    func(e timeline.Event, d []byte) error { l.events, l.doc = append(l.events, e), d; return nil },
		Append: func(r *sample.Reading) error { l.points = r.Points; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// turn runs a measurement and returns its event.
func (l *live) turn(i int) timeline.Event {
	l.t.Helper()
	l.doc, l.points = nil, nil
	l.s.turn(l.t.Context(), l.s.plans[i])
	if len(l.events) == 0 {
		l.t.Fatal("no event")
	}
	return l.events[len(l.events)-1]
}

// value returns a point by metric and labels.
func (l *live) value(m *sample.Metric, of ...string) float64 {
	l.t.Helper()
	for _, p := range l.points {
		if p.Series.Metric == m && strings.Join(p.Series.Values, " ") == strings.Join(of, " ") {
			return p.Value
		}
	}
	l.t.Errorf("no %s of %v", m.Name, of)
	return 0
}

// serve is a far host as `linerate serve` makes one.
func serve(t *testing.T, addr string) (at, keyFile string, end func()) {
	t.Helper()
	key := wire.NewKey()
	listener, err := wire.Listen(t.Context(), addr, key)
	if err != nil {
		t.Fatal(err)
	}
	keyFile = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := peer.Serve(ctx,
			peer.ServerOptions{Listener: listener, Version: "test", HostName: "far"}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	end = sync.OnceFunc(func() { cancel(); served.Wait() })
	t.Cleanup(end)
	return listener.Addr().String(), keyFile, end
}

// TestAgainstServe measures over loopback, loses the far host, and finds another one in its place.
func TestAgainstServe(t *testing.T) {
	testenv.Need(t, testenv.Long)
	at, keyFile, end := serve(t, fmt.Sprint("127.0.0.1:", testenv.FreePorts(t, 1)))
	every := span(time.Hour)
	l := newLive(t,
		Config{Name: "bulk", Target: at, KeyFile: keyFile, Test: "stream", Duration: span(time.Second), Rate: "20M",
			BytesPerDay: "1G", Every: every},
		Config{Name: "pings", Target: at, KeyFile: keyFile, Test: "ping", Duration: span(time.Second), Every: every},
		Config{Name: "amount", Target: at, KeyFile: keyFile, Test: "udp", Direction: "bidir", Bytes: "200k",
			Every: every},
	)
	e := l.turn(0)
	if e.State != "done" || e.Subject != at || !strings.Contains(e.Title, "stream to "+at+": ") {
		t.Fatalf("event %+v", e)
	}
	var d report.MeasureDocument
	if err := json.Unmarshal(l.doc, &d); err != nil || d.Schema != report.SchemaMeasure || len(d.Tests) != 1 {
		t.Fatalf("document %.300s, %v", l.doc, err)
	}
	// The rate is a bound from above: a busy machine sends less.
	if got := l.value(throughput, at, "stream", "up"); got <= 0 || got > 22e6 {
		t.Errorf("%g b/s at a rate of 20 Mb/s", got)
	}
	// A run sends at most the bytes that the budget counted for it.
	if worst := l.s.plans[0].worst; d.Tests[0].Bytes > worst || worst > 20e6/8*4 {
		t.Errorf("%d bytes were measured, and %d thought to be the most", d.Tests[0].Bytes, worst)
	}
	if e = l.turn(1); e.State != "done" || l.value(roundTrip, at, "ping", "up", "0.5") <= 0 ||
		l.value(lossRatio, at, "ping", "up") >= 1 {
		t.Errorf("event %+v, points %v", e, l.points)
	}
	if e = l.turn(2); e.State != "done" || l.value(throughput, at, "udp", "bidir") <= 0 {
		t.Errorf("event %+v", e)
	}
	end()
	e = l.turn(1)
	if e.State != "failed" || l.value(success, at, "ping", "up") != 0 || strings.Contains(e.Title, "\n") {
		t.Errorf("event of a far host that is gone: %+v", e)
	}
	// A far host with another key fails; one with the right key is measured again.
	_, otherKey, endOther := serve(t, at)
	if e = l.turn(1); e.State != "failed" {
		t.Errorf("event with a wrong key: %+v", e)
	}
	b, err := os.ReadFile(otherKey)
	if err == nil {
		err = os.WriteFile(keyFile, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e = l.turn(1); e.State != "done" || l.value(success, at, "ping", "up") != 1 {
		t.Errorf("event of a far host that is back: %+v", e)
	}
	endOther()
	if cells := l.s.Matrix(); len(cells) != 3 || cells[0].From != "near" || cells[0].To != at {
		t.Errorf("matrix %+v", cells)
	}
}

// TestScheduleSurvivesARestart restarts a far host whose peers have keys of their own, at the same
// port: the schedule goes on with the key that it has.
func TestScheduleSurvivesARestart(t *testing.T) {
	testenv.Need(t, testenv.Long)
	hub := roster.Peer{Name: "hub", Key: wire.NewKey()}
	lab := roster.Peer{Name: "lab", Key: wire.NewKey()}
	file := roster.File{FS: durable.NewMem(), Path: "/serve/peers.json"}
	if err := file.Edit(t.Context(), func([]roster.Peer) ([]roster.Peer, error) {
		return []roster.Peer{hub, lab}, nil
	}); err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(hub.Key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprint("127.0.0.1:", testenv.FreePorts(t, 1))
	start := func() (end func()) {
		t.Helper()
		peers, err := roster.Follow(file, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := wire.ListenKeys(t.Context(), at, peers.Keys())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- peer.Serve(ctx, peer.ServerOptions{Listener: listener, Peers: peers, Version: "test", HostName: "far"})
		}()
		end = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(end)
		return end
	}
	end := start()
	l := newLive(t, Config{Name: "pings", Target: at, KeyFile: keyFile, Test: "ping", Duration: span(time.Second),
		Every: span(time.Hour)})
	for _, when := range []string{"before", "after"} {
		if e := l.turn(0); e.State != "done" || l.value(success, at, "ping", "up") != 1 {
			t.Errorf("%s the restart: %+v", when, e)
		}
		end()
		end = start()
	}
	if err := file.Edit(t.Context(), func(p []roster.Peer) ([]roster.Peer, error) { return p[1:], nil }); err != nil {
		t.Fatal(err)
	}
	end()
	start()
	if e := l.turn(0); e.State != "failed" || !strings.Contains(e.Title, "wrong key") {
		t.Errorf("with a revoked key: %+v", e)
	}
}

// TestSilentTargetsAreCut checks that a target which accepts connections and stays silent costs the
// time limit and no more, with every dialect.
func TestSilentTargetsAreCut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	at := listener.Addr().String()
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(wire.NewKey().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	limit := span(time.Second)
	for _, c := range []Config{
		{Name: "serve", Target: at, KeyFile: keyFile, Test: "stream", Every: span(time.Hour), TimeLimit: limit},
		{Name: "iperf3", Target: "iperf3://" + at, Test: "stream", Every: span(time.Hour), TimeLimit: limit},
		{Name: "nuttcp", Target: "nuttcp://" + at, Test: "stream", Every: span(time.Hour), TimeLimit: limit},
	} {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t, c)
			// It must return at all: otherwise the test hangs.
			if e := l.turn(0); e.State != "failed" || l.value(success, c.Target, "stream", "up") != 0 ||
				!strings.Contains(e.Title, "took longer than its time limit") {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// TestEchoes measures a target that is only a kernel.
func TestEchoes(t *testing.T) {
	testenv.Need(t, testenv.Network, testenv.Long)
	l := newLive(t, Config{Name: "kernel", Target: "icmp://127.0.0.1", Duration: span(time.Second),
		Every: span(time.Hour)})
	if e := l.turn(0); e.State != "done" || l.value(roundTrip, "icmp://127.0.0.1", "ping", "up", "min") <= 0 {
		t.Errorf("event %+v", e)
	}
}
