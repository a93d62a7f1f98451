package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// source is a host in memory.
type source struct {
	state   string
	stamp   int
	changes []journal.Change
	docs    map[string]string
	fail    error
	reads   int
}

func (s *source) State(context.Context) (string, error) { return s.state, s.fail }
func (s *source) Stamp(context.Context) (string, error) { return fmt.Sprint(s.stamp), s.fail }

func (s *source) History(context.Context) ([]journal.Change, error) {
	s.reads++
	return slices.Clone(s.changes), s.fail
}

func (s *source) Runs(_ context.Context, kind runs.Kind) (ids []string, err error) {
	for name := range s.docs {
		id, ok := strings.CutPrefix(name, string(kind)+"/")
		if !ok {
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, s.fail
}

func (s *source) Run(_ context.Context, kind runs.Kind, id string) ([]byte, error) {
	s.reads++
	doc, ok := s.docs[string(kind)+"/"+id]
	if !ok {
		return nil, fs.ErrNotExist
	}
	if doc == "" {
		return nil, errors.New("answer of the agent: " + agent.ErrTooLarge.Error())
	}
	return []byte(doc), s.fail
}

// host is a followed host, with a clock that the test moves.
type host struct {
	t      *testing.T
	disk   *durable.Mem
	fsys   durable.FS
	source *source
	now    time.Time
	boot   string
	booted time.Time
	store  *timeline.Store
	f      *Follower
}

func newHost(t *testing.T) *host {
	mem := durable.NewMem()
	h := &host{t: t, disk: mem, fsys: mem, source: &source{state: "/var/lib/linerate", docs: map[string]string{}},
		now: noon, boot: "boot-a", booted: noon.Add(-time.Hour)}
	h.start(time.Time{})
	return h
}

// start starts the follower, for the first time or again.
func (h *host) start(lastSample time.Time) {
	h.t.Helper()
	if h.store != nil {
		h.store.Close()
	}
	clock := func() time.Time { return h.now }
	var err error
	if h.store, err = timeline.Open(timeline.Options{Dir: "/hub/timeline", FS: h.fsys, Now: clock}); err != nil {
		h.t.Fatal(err)
	}
	h.f, err = New(Options{
		Host: "a", Store: h.store, Source: h.source, Dir: "/hub", FS: h.fsys, Version: "v", Now: clock,
		Boot: func() (string, time.Duration, error) { return h.boot, h.now.Sub(h.booted), nil },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.f.Begin(lastSample); err != nil {
		h.t.Fatal(err)
	}
}

// look moves the clock and looks.
func (h *host) look(d time.Duration) {
	h.t.Helper()
	h.now = h.now.Add(d)
	h.f.Look(h.t.Context())
	if err := h.f.Err(); err != nil {
		h.t.Fatal(err)
	}
}

// events returns the events of a kind, one line each.
func (h *host) events(kind timeline.Kind) []string {
	events, _ := h.store.Between(time.Time{}, time.Time{},
		timeline.Query{Kinds: []timeline.Kind{kind}, Limit: timeline.MaxLimit})
	lines := []string{}
	for _, e := range events {
		line := fmt.Sprintf("%s %s", e.ID, e.Time.Format("15:04:05"))
		if !e.End.IsZero() {
			line += "-" + e.End.Format("15:04:05")
		}
		if e.Open {
			line += "-open"
		}
		lines = append(lines, fmt.Sprintf("%s | %s | %s | %s", line, e.Title, e.State, e.Undo))
	}
	return lines
}

func (h *host) want(kind timeline.Kind, want ...string) {
	h.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, h.events(kind)); diff != "" {
		h.t.Errorf("%s: %s", kind, diff)
	}
}

func TestChanges(t *testing.T) {
	h := newHost(t)
	h.look(time.Second)
	h.want(timeline.Change)
	h.source.changes = []journal.Change{
		{ID: "0001", Time: noon, Knob: "sysctl:net.ipv4.tcp_rmem", From: "4096 131072 6291456",
			To: "4096 131072 16777216", State: journal.Trial, BootID: "boot-a", Reason: "because"},
		{ID: "0002", Time: noon.Add(-24 * time.Hour), Knob: "ethtool:eth0/ring.rx", From: "256", To: "1024",
			State: journal.Committed, BootID: "boot-before"},
		{ID: "0003", Time: noon.Add(-24 * time.Hour), Knob: "link:eth0/mtu", From: "1500", To: "9000",
			State: journal.Persisted, Persisted: true, BootID: "boot-before"},
	}
	const (
		rmem = `sysctl:net.ipv4.tcp_rmem: "4096 131072 6291456" → "4096 131072 16777216"`
		old  = "0002 12:00:00 | ethtool:eth0/ring.rx: 256 → 1024 (until the restart) | committed | "
		kept = "0003 12:00:00 | link:eth0/mtu: 1500 → 9000 | persisted | linerate undo 0003"
	)
	h.look(time.Second)
	h.want(timeline.Change) // the stamp is as before
	h.source.stamp++
	h.look(time.Second)
	h.want(timeline.Change, old, kept, "0001 12:00:00 | "+rmem+" | trial | linerate undo 0001")
	if e, _ := h.store.Get("0003"); e.Interface != "eth0" || e.Host != "a" || e.Subject != "link:eth0/mtu" {
		t.Errorf("event %+v", e)
	}
	reads := h.source.reads
	for range 30 {
		h.look(time.Second)
	}
	if h.source.reads != reads {
		t.Errorf("read %d times though nothing changed", h.source.reads-reads)
	}
	h.source.changes[0].State = journal.Committed
	h.look(40 * time.Second) // without a change of the stamp, it is read anyway
	h.want(timeline.Change, old, kept, "0001 12:00:00 | "+rmem+" | committed | linerate undo 0001")

	// A restart puts nothing again.
	operations := func(do func()) int {
		h.source.stamp++
		faulty := durable.NewFaulty(h.disk, func(durable.Op) error { return nil })
		h.fsys = faulty
		h.start(time.Time{})
		before := faulty.Operations()
		do()
		return faulty.Operations() - before
	}
	if n := operations(func() { h.look(time.Second) }); n != 0 {
		t.Errorf("%d operations on the disk after a restart, for nothing new", n)
	}
	h.source.changes[0].State, h.source.changes[0].Note = journal.Undone, "undone"
	h.source.stamp++
	h.look(time.Minute) // a note that only repeats the state is not part of the title
	h.want(timeline.Change, old, kept, fmt.Sprintf("0001 12:00:00-%s | %s | undone | ", h.now.Format("15:04:05"), rmem))
	undone := h.now
	h.source.changes[0].Note = "undone by guard (writer died)"
	h.source.stamp++
	h.look(time.Minute)
	gone := fmt.Sprintf("0001 12:00:00-%s | %s (undone by guard (writer died)) | undone | ",
		undone.Format("15:04:05"), rmem)
	h.want(timeline.Change, old, kept, gone)
	h.source.stamp++
	h.look(time.Hour) // the end stays where it was
	h.want(timeline.Change, old, kept, gone)

	doc, err := h.store.Document("0001")
	var d report.HistoryDocument
	if err := errors.Join(err, json.Unmarshal(doc, &d)); err != nil || d.Schema != report.SchemaHistory ||
		len(d.Changes) != 1 || !cmp.Equal(d.Changes[0], h.source.changes[0]) {
		t.Errorf("document %s, %v", doc, err)
	}
	if err := reporttest.Validate(doc); err != nil {
		t.Errorf("not of its schema: %v", err)
	}

	// The state was made anew: its first change is another one than the first of before, also after
	// a restart.
	h.source.changes = []journal.Change{{ID: "0001", Time: noon.Add(2 * time.Hour), Knob: "sysctl:x.y", From: "",
		To: "a'b", State: journal.Committed, BootID: "boot-a"}}
	h.source.state = "/root/it's here"
	for range 2 {
		h.source.stamp++
		h.look(time.Second)
		h.want(timeline.Change, old, kept, gone,
			"0001-1795356000 14:00:00 | sysctl:x.y: \"\" → a'b | committed | linerate undo 0001 --state "+
				"'/root/it'\\''s here'")
		h.start(time.Time{})
	}
}

func TestRuns(t *testing.T) {
	h := newHost(t)
	const one, two, three, four = "20261122-110000-0001", "20261122-120000-0002", "20261121-100000-0003",
		"20261120-100000-0004"
	doc := func(at time.Time, rest string) string {
		return fmt.Sprintf(`{"schema":"linerate.tune/1","time":%q,"target":"far","goal":"throughput",`+
			`"trials":[],"kept":[{"side":"near","knob":"sysctl:x"}],`+
			`"segments":[],%s}`, at.Format(time.RFC3339), rest)
	}
	h.source.docs["runs/"+one] = doc(noon.Add(-time.Minute),
		`"state":"committed","duration_seconds":600.5,"final":{"pairs":8,"effect_ratio":1.342,`+
			`"effect_low_ratio":1.3,"effect_high_ratio":1.4}`)
	h.source.docs["runs/"+two] = doc(noon.Add(30*time.Second), `"state":"trial","unfinished":"still under way"`)
	h.source.docs["runs/"+three] = `{"schema":"linerate.inspect/1"}`
	h.source.docs["runs/"+four] = ""
	h.look(time.Minute)
	first := []string{
		four + " 10:00:00 | tune, whose document is larger than 16 MiB | unreadable | ",
		three + " 10:00:00 | tune, whose document cannot be read | unreadable | ",
		one + " 11:00:00-11:10:00 | tune for throughput to far: +34.2 % (+30.0 to +40.0 %), 1 kept | committed | ",
	}
	h.want(timeline.Run,
		append(first, two+" 12:00:00-open | tune for throughput to far, 1 kept: still under way | unfinished | ")...)
	if got, err := h.store.Document(one); err != nil || string(got) != h.source.docs["runs/"+one] {
		t.Errorf("document: %s, %v", got, err)
	}
	h.look(20 * time.Minute) // no process stores it any more
	gone := two + " 12:00:00-12:00:30 | tune for throughput to far, 1 kept: still under way | unfinished | "
	h.want(timeline.Run, append(first, gone)...)
	h.start(time.Time{})
	h.source.stamp++
	h.look(time.Second)
	h.want(timeline.Run, append(first, gone)...)
	h.source.docs["runs/"+two] = doc(h.now, `"state":"undone","duration_seconds":1300`)
	h.look(time.Minute)
	h.want(timeline.Run,
		append(first, two+" 12:00:00-12:21:40 | tune for throughput to far: nothing to tune, 1 kept | undone | ")...)
}

// TestMeasurements checks that a measurement from the command line is an event with its document,
// and is read once.
func TestMeasurements(t *testing.T) {
	h := newHost(t)
	const one, two, three, four = "20261122-110000-0001", "20261122-110500-0002", "20261122-111000-0003",
		"20261122-112000-0004"
	h.source.docs["measurements/"+
		one] = `{"schema":"linerate.measure/1","time":"2026-11-22T11:00:20Z","target":"far","later_key":1,"tests":[` +
		`{"test":"stream","direction":"up","throughput_bits_per_second":9.4e9},{"test":"rr","direction":"up",` +
		`"transactions_per_second":12000},{"test":"load","direction":"down"}]}`
	h.source.docs["measurements/"+
		two] = `{"schema":"linerate.measure/1","time":"2026-11-22T11:05:03Z","target":"iperf3://far",` +
		`"tests":[{"test":"udp","direction":"down",` +
		`"throughput_bits_per_second":1e8,"loss_ratio":0.02}],"warnings":["the rest is missing"]}`
	h.source.docs["measurements/"+three] = `{"schema":"linerate.tune/1"}`
	h.source.docs["measurements/"+four] = ""
	want := []string{
		"measurement-" + one +
			" 11:00:00-11:00:20 | suite to far: stream up 9.40 Gb/s · rr 12.0 k transactions/s | done | ",
		"measurement-" + two + " 11:05:00-11:05:03 | udp down to iperf3://far: 100 Mb/s, 2.00 % lost | done | ",
		"measurement-" + three + " 11:10:00 | measurement, whose document cannot be read | unreadable | ",
		"measurement-" + four + " 11:20:00 | measurement, whose document is larger than 16 MiB | unreadable | ",
	}
	h.look(time.Minute)
	h.want(timeline.Measurement, want...)
	if got, err := h.store.Document("measurement-" + one); err != nil ||
		string(got) != h.source.docs["measurements/"+one] {
		t.Errorf("document: %s, %v", got, err)
	}
	if e, _ := h.store.Get("measurement-" + two); e.Severity != "notice" || e.Subject != "iperf3://far" {
		t.Errorf("one with a warning: %+v", e)
	}
	reads := h.source.reads
	h.source.stamp++
	h.look(time.Second)
	if n := h.source.reads - reads; n != 1 {
		t.Errorf("%d documents read again", n-1) // the one read is that of the journal
	}
	h.start(time.Time{})
	h.source.stamp++
	h.look(time.Second)
	h.want(timeline.Measurement, want...)
}

func TestPresence(t *testing.T) {
	h := newHost(t)
	h.want(timeline.Reboot, "boot-boot-a 11:00:00 | the host was booted |  | ")
	h.look(2 * time.Minute) // is remembered
	h.now = h.now.Add(5 * time.Second)
	h.start(time.Time{})
	h.want(timeline.Gap) // five seconds are no gap
	h.now = h.now.Add(10 * time.Minute)
	h.start(h.now.Add(-9 * time.Minute)) // the history has a later sample
	h.want(timeline.Gap,
		"gap-1795348985 12:03:05-12:12:05 | nothing recorded for 9 min: the hub did not run |  | ")
	h.now = h.now.Add(time.Hour)
	h.boot, h.booted = "boot-b", h.now.Add(-time.Minute)
	h.start(time.Time{})
	h.want(timeline.Gap,
		"gap-1795348985 12:03:05-12:12:05 | nothing recorded for 9 min: the hub did not run |  | ",
		"gap-1795349525 12:12:05-13:12:05 | nothing recorded for 60 min: the host was rebooted |  | ")
	h.want(timeline.Reboot, "boot-boot-a 11:00:00 | the host was booted |  | ",
		"boot-boot-b 13:11:05 | the host was rebooted; the hub last saw it 59 min before |  | ")
	h.booted = h.booted.Add(time.Second) // clocks drift
	h.start(time.Time{})
	if n := len(h.events(timeline.Reboot)); n != 2 {
		t.Errorf("%d restarts", n)
	}
	// A file in another format is ignored.
	if err := durable.Replace(h.disk, "/hub/seen.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start(time.Time{})
	// The clock was set back.
	h.now = h.now.Add(-30 * time.Minute)
	h.start(time.Time{})
	if n := len(h.events(timeline.Gap)); n != 2 {
		t.Errorf("%d gaps", n)
	}
}

func TestReadings(t *testing.T) {
	h := newHost(t)
	up := time.Hour
	read := func(wall, truly time.Duration, happened ...sample.Happening) {
		h.now, up = h.now.Add(wall), up+truly
		h.f.Happened(&sample.Reading{Time: h.now, SinceBoot: up, Happened: happened})
		h.look(0)
	}
	read(0, 0)
	read(time.Second, time.Second)
	read(9*time.Second, 9*time.Second)
	read(time.Minute, time.Minute)
	read(time.Hour, time.Second)
	read(-time.Hour, time.Second)
	read(time.Second, -up) // another boot, to which nothing can be compared
	h.want(timeline.Gap,
		"gap-1795348810 12:00:10-12:01:10 | nothing recorded for 60 s: the host was suspended, or too busy |  | ",
		"gap-1795348870 12:01:10-13:01:10 | nothing recorded for 60 min: the clock was set forward by 60 min |  | ")

	h.now = noon.Add(3 * time.Hour)
	link := func(change sample.Change, name string) sample.Happening {
		return sample.Happening{Time: h.now, Change: change, Interface: name, Text: name + " " + string(change)}
	}
	read(time.Second, time.Second, link(sample.LinkDown, "eth0"), link(sample.LinkUp, "br:ä"))
	h.want(timeline.Link,
		"link-1795359600000-br__-link-up 15:00:00 | br:ä link-up | link-up | ",
		"link-1795359600000-eth0-link-down 15:00:00 | eth0 link-down | link-down | ")
	if e, _ := h.store.Get("link-1795359600000-eth0-link-down"); e.Severity != "warning" || e.Interface != "eth0" {
		t.Errorf("event %+v", e)
	}
}

// TestFlapping checks that an interface which comes and goes for hours is a few events and not
// thousands.
func TestFlapping(t *testing.T) {
	h := newHost(t)
	for i := range 7200 {
		h.now = h.now.Add(time.Second)
		change := []sample.Change{sample.LinkUp, sample.LinkDown}[i%2]
		h.f.Happened(&sample.Reading{Time: h.now, SinceBoot: time.Duration(i) * time.Second,
			Happened: []sample.Happening{{Time: h.now, Change: change, Interface: "eth0"}}})
		h.look(0)
	}
	h.look(11 * time.Minute)
	lines := h.events(timeline.Link)
	if want := "flaps-1795348821-eth0 12:00:21-14:00:00 | eth0 comes and goes: 7180 changes | flapping | "; len(
		lines) != manyChanges+1 || lines[manyChanges] != want {
		t.Errorf("%d events, the last %q", len(lines), lines[len(lines)-1])
	}
	if len(h.f.links) != 0 {
		t.Errorf("%d interfaces are remembered", len(h.f.links))
	}
	// While it flaps, the hub ends.
	for i := range 30 {
		h.now = h.now.Add(time.Second)
		h.f.Happened(&sample.Reading{Time: h.now, SinceBoot: time.Duration(i) * time.Second,
			Happened: []sample.Happening{{Time: h.now, Change: sample.LinkUp, Interface: "eth1"}}})
	}
	h.look(0)
	h.start(time.Time{})
	for _, line := range h.events(timeline.Link) {
		if strings.Contains(line, "open") {
			t.Errorf("not over: %q", line)
		}
	}
}

func finding(code evidence.Code, severity evidence.Severity, title string) evidence.Finding {
	return evidence.Finding{Code: code, Severity: severity, Confidence: 0.9, Where: "near", Title: title}
}

func TestFindings(t *testing.T) {
	h := newHost(t)
	minute := func(n int, found ...evidence.Finding) {
		for range n {
			h.f.Findings(h.now, append(found, finding("healthy", evidence.Info, "healthy")))
			h.look(time.Minute)
		}
	}
	overrun := func(severity evidence.Severity, title string) evidence.Finding {
		return finding("rx-ring-overrun", severity, title)
	}
	minute(3)
	h.want(timeline.Finding)
	// It flickers, gets worse and better, and is one event.
	minute(1, overrun(evidence.Warning, "3 lost"))
	h.want(timeline.Finding, "finding-rx-ring-overrun-near-1795348980 12:03:00-open | 3 lost | near | ")
	minute(3)
	minute(1, overrun(evidence.Critical, "9 lost"))
	minute(4)
	minute(1, overrun(evidence.Notice, "1 lost"), finding("softnet-backlog-drops", evidence.Warning, "backlog"))
	h.want(timeline.Finding,
		"finding-rx-ring-overrun-near-1795348980 12:03:00-open | 9 lost | near | ",
		"finding-softnet-backlog-drops-near-1795349520 12:12:00-open | backlog | near | ")
	doc, err := h.store.Document("finding-rx-ring-overrun-near-1795348980")
	var d report.DiagnoseDocument
	if err := errors.Join(err, json.Unmarshal(doc, &d)); err != nil || d.Limit != "rx-ring-overrun" ||
		d.Findings[0].Title != "9 lost" {
		t.Errorf("document %s, %v", doc, err)
	}
	if err := reporttest.Validate(doc); err != nil {
		t.Errorf("not of its schema: %v", err)
	}
	// The hub ends and comes back soon: it goes on.
	h.start(time.Time{})
	minute(1, overrun(evidence.Notice, "1 lost"))
	minute(7)
	h.want(timeline.Finding,
		"finding-rx-ring-overrun-near-1795348980 12:03:00-12:13:00 | 9 lost | near | ",
		"finding-softnet-backlog-drops-near-1795349520 12:12:00-12:13:00 | backlog | near | ")
	// It comes back late: the open event ended when the hub last ran, and another begins.
	minute(1, overrun(evidence.Notice, "again"))
	h.now = h.now.Add(time.Hour)
	h.start(time.Time{})
	minute(1, overrun(evidence.Notice, "again"))
	h.want(timeline.Finding,
		"finding-rx-ring-overrun-near-1795348980 12:03:00-12:13:00 | 9 lost | near | ",
		"finding-softnet-backlog-drops-near-1795349520 12:12:00-12:13:00 | backlog | near | ",
		"finding-rx-ring-overrun-near-1795350060 12:21:00-12:22:00 | again | near | ",
		"finding-rx-ring-overrun-near-1795353720 13:22:00-open | again | near | ")
}

// TestHysteresis checks that the events of a finding cover every report, do not overlap, and are
// more than a pause apart.
func TestHysteresis(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 20 {
		h := newHost(t)
		var reports []time.Time
		p := random.Float64()
		for range 200 {
			var found []evidence.Finding
			if random.Float64() < p*p {
				found = append(found, finding("cpu-steal", severitiesAt(random), "stolen"))
				reports = append(reports, h.now)
			}
			h.f.Findings(h.now, found)
			h.look(time.Minute)
			if random.IntN(40) == 0 {
				h.start(time.Time{})
			}
		}
		h.look(time.Hour)
		events, _ := h.store.Between(time.Time{}, time.Time{}, timeline.Query{Kinds: []timeline.Kind{timeline.Finding}})
		for i, e := range events {
			if e.Open || i > 0 && e.Time.Sub(events[i-1].End) < pauseOf {
				t.Fatalf("event %d: %+v after %+v", i, e, events[max(i-1, 0)])
			}
		}
		for _, at := range reports {
			if !slices.ContainsFunc(events,
				func(e timeline.Event) bool { return !at.Before(e.Time) && !at.After(e.End) }) {
				t.Fatalf("the report of %v is in no event", at)
			}
		}
	}
}

func severitiesAt(random *rand.Rand) evidence.Severity {
	return severities[random.IntN(len(severities))]
}

// TestRefusals checks that a failing source or disk is reported, does not stop the rest, and is
// retried.
func TestRefusals(t *testing.T) {
	h := newHost(t)
	h.source.fail = fs.ErrPermission
	h.source.changes = []journal.Change{
		{ID: "0001", Time: noon, Knob: "sysctl:a.b", From: "1", To: "2", State: journal.Committed, BootID: "boot-a"},
		{ID: "0002", Time: noon, Knob: "sysctl:a.c", From: "1", To: "2", State: journal.Committed, BootID: "boot-a"},
	}
	h.f.Look(t.Context())
	if err := h.f.Err(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a source that refuses: %v", err)
	}
	h.source.fail = nil
	h.now = h.now.Add(time.Second)
	h.f.Look(t.Context())
	if err := h.f.Err(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("not asked again yet: %v", err)
	}
	full := true
	h.fsys = durable.NewFaulty(h.disk, func(op durable.Op) error {
		if full && op.Kind == durable.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	full = false
	h.start(time.Time{})
	full = true
	h.f.Look(t.Context())
	if err := h.f.Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a disk that refuses: %v", err)
	}
	if n := len(h.events(timeline.Change)); n != 2 {
		t.Errorf("%d changes are in memory", n)
	}
	full = false
	h.look(retryAfter)
	for _, id := range []string{"0001", "0002"} {
		if _, err := h.store.Document(id); err != nil {
			t.Errorf("%s has no document when there is room: %v", id, err)
		}
	}
}
