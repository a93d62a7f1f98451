package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/hub/internal/fleet/swarm"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

// patience is how long an event may take: a guard against hanging. On a starved machine 200 hosts
// need minutes for their handshakes.
const patience = 10 * time.Minute

// own is how many connections a desk has itself: control, questions, documents and orders.
const own = 4

// running is a desk of a test.
type running struct {
	*Desk
	o    Options
	stop func()
}

func start(t *testing.T, o Options) *running {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	r := &running{Desk: d, o: o}
	var once sync.Once
	r.stop = func() { once.Do(func() { cancel(); done.Wait(); d.Close() }) }
	t.Cleanup(r.stop)
	return r
}

func options(t *testing.T) Options {
	// A path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Not ports that the kernel assigns: a host that dials such a port while the hub is away can get
	// it for its own end.
	port := testenv.FreePorts(t, 2)
	return Options{Dir: dir, Join: fmt.Sprint("127.0.0.1:", port), Bus: fmt.Sprint("127.0.0.1:", port+1),
		Name:    "hub",
		Version: "1.0"}
}

// invite returns a token over the socket, as the command does.
func invite(t *testing.T, dir string, q Request) (address string, token member.Token) {
	t.Helper()
	q.Do, q.TTLMS = DoInvite, time.Hour.Milliseconds()
	var doc report.FleetInviteDocument
	if err := Call(t.Context(), dir, q, &doc, nil); err != nil {
		t.Fatal(err)
	}
	valid(t, &doc)
	address, token, err := member.ParseLine(strings.Fields(doc.Line))
	if err != nil {
		t.Fatal(err)
	}
	return address, token
}

func valid(t *testing.T, doc any) {
	t.Helper()
	b, err := json.Marshal(doc)
	if err == nil {
		err = reporttest.Validate(b)
	}
	if err != nil {
		t.Error(err)
	}
}

// until repeats a look until it is satisfied. It asks for state, which events change; patience only
// guards against hanging.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// TestFleet joins 200 hosts over real TLS, half of them in the first tier. It asks them, fetches
// from all, restarts the hub, and loses its register.
func TestFleet(t *testing.T) {
	hosts := testenv.Sample(200, 100)
	d := start(t, options(t))
	dir := d.o.Dir
	address, token := invite(t, dir, Request{Uses: hosts, Groups: []string{"web"},
		Labels: map[string]string{"site": "ams"}})
	var s swarm.Swarm
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		s.Run(ctx, swarm.Options{Hosts: hosts, Address: address, Token: token,
			BeatEvery: 200 * time.Millisecond, Longest: time.Second})
	})
	defer done.Wait()
	defer stop()
	var status report.FleetStatusDocument
	known := func(silent int) func() bool {
		return func() bool {
			status = report.FleetStatusDocument{}
			if err := Call(t.Context(), dir, Request{Do: DoStatus}, &status, nil); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, c := range status.Classes {
				if c.Name != "unknown" {
					n += c.Hosts
				}
			}
			return status.Members["member"] == hosts && n == hosts && status.Silent == silent
		}
	}
	until(t, "all hosts are known", known(0))
	valid(t, &status)
	if len(status.Classes) != 4 || status.Drifted != hosts/100 || status.Differing != hosts/100 ||
		status.Findings["rx-ring-overrun"] != hosts/20 ||
		s.Err() != nil {
		t.Errorf("status: %+v; first error %v", status, s.Err())
	}
	everyoneAnswers(t, dir, hosts)

	// A restart: no host is refused, and what was in memory is known again.
	before := s.Connected.Load()
	d.stop()
	if err := Call(t.Context(), dir, Request{Do: DoStatus}, &status, nil); !errors.Is(err, ErrNoHub) {
		t.Errorf("call without a hub: %v, want ErrNoHub", err)
	}
	d = start(t, d.o)
	until(t, "all hosts are connected again", func() bool { return s.Connected.Load() >= before+int64(hosts) })
	until(t, "all hosts are known again", known(0))
	everyoneAnswers(t, dir, hosts)

	// The register is lost, the keys are not: the hosts bring back what it had.
	d.stop()
	if err := os.RemoveAll(filepath.Join(dir, registerDir)); err != nil {
		t.Fatal(err)
	}
	d = start(t, d.o)
	until(t, "all hosts are known after the register was lost", known(0))
	everyoneAnswers(t, dir, hosts)
	if s.Failed.Load() != 0 {
		t.Errorf("%d hosts failed: %v", s.Failed.Load(), s.Err())
	}
	// Hosts that are gone are named.
	stop()
	done.Wait()
	var asked report.FleetAskDocument
	until(t, "the bus sees that the hosts are gone", func() bool { return d.hub.Connections() == own })
	if err := Call(t.Context(), dir, Request{Do: DoAsk, Verb: "ping", Selection: "host000007.*"}, &asked,
		nil); err != nil {
		t.Fatal(err)
	}
	if len(asked.Absent) != 1 || asked.Absent[0].Name != "host000007.example" || asked.Asked != 1 {
		t.Errorf("a host that is gone: %+v", asked)
	}
}

// everyoneAnswers asks all hosts and a part of them, and fetches a document from each. It repeats
// what met absent hosts: one that has renewed its identity, because the hub asked it to or was away
// for seconds, ends its connection and opens another, and no event shows the hub that all have.
func everyoneAnswers(t *testing.T, dir string, hosts int) {
	t.Helper()
	for text, want := range map[string]int{"": hosts, "class:mlx5": hosts / 4,
		"site:ams group:web drift:yes": hosts / 100,
		"site:fra":                     0} {
		var doc report.FleetAskDocument
		until(t, fmt.Sprintf("ask %q: an answer of every host", text), func() bool {
			doc = report.FleetAskDocument{}
			err := Call(t.Context(), dir, Request{Do: DoAsk, Verb: node.VerbPing, Selection: text,
				WithinMS: (10 * time.Second).Milliseconds()}, &doc, nil)
			if err != nil {
				t.Fatal(err)
			}
			return len(doc.Absent)+len(doc.Silent) == 0 && !doc.Incomplete
		})
		valid(t, &doc)
		if doc.Asked != want || want > 0 && (len(doc.Answers) != 1 || len(doc.Answers[0].Hosts) != want) {
			t.Errorf("ask %q: %d asked, %d different answers, want %d", text, doc.Asked, len(doc.Answers), want)
		}
	}
	var items map[string]int
	var doc report.FleetFetchDocument
	until(t, "a document of every host", func() bool {
		items, doc = make(map[string]int), report.FleetFetchDocument{}
		if err := Call(t.Context(), dir, Request{Do: DoFetch, Document: node.DocumentInspect}, &doc,
			func(i Item) error {
				var content struct{ Name string }
				if err := json.Unmarshal(i.Data, &content); err != nil || content.Name != i.Name {
					return fmt.Errorf("document of %s: it names %q: %w", i.Name, content.Name, err)
				}
				items[i.ID]++
				return nil
			}); err != nil {
			t.Fatal(err)
		}
		return len(doc.Missing) == 0
	})
	valid(t, &doc)
	if len(items) != hosts || len(doc.Fetched) != hosts {
		t.Errorf("fetched %d documents of %d hosts", len(items), hosts)
	}
}

// TestLargeDocument fetches one of many parts, more than the hub asks for at a time.
func TestLargeDocument(t *testing.T) {
	d := start(t, options(t))
	address, token := invite(t, d.o.Dir, Request{Uses: 1})
	var s swarm.Swarm
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		s.Run(ctx, swarm.Options{Hosts: 1, Address: address, Token: token, Document: 10 << 20,
			BeatEvery: 200 * time.Millisecond})
	})
	defer done.Wait()
	defer stop()
	until(t, "the host speaks", func() bool {
		return s.Connected.Load() > 0 && d.status().Silent == 0 &&
			len(d.status().Classes) > 0
	})
	id := d.register.Members()[0].ID
	got := d.bulk.One(t.Context(), node.DocumentInspect, id, "")
	if got.Err != nil || len(got.Data) < 10<<20 {
		t.Fatalf("%d bytes, %v", len(got.Data), got.Err)
	}
	again := d.bulk.One(t.Context(), node.DocumentInspect, id, got.Hash)
	if again.Err != nil || !again.Same || again.Data != nil {
		t.Errorf("a document that is known: %d bytes, same %v, %v", len(again.Data), again.Same, again.Err)
	}
	if missing := d.bulk.One(t.Context(), "nosuch", id, ""); !errors.Is(missing.Err, os.ErrNotExist) {
		t.Errorf("a document that is not there: %v", missing.Err)
	}
	if absent := d.bulk.One(t.Context(), "facts", "01STRANGER", ""); absent.Err == nil {
		t.Error("a document of a stranger")
	}
	var doc report.FleetAskDocument
	if err := Call(t.Context(), d.o.Dir, Request{Do: DoAsk, Verb: "future"}, &doc, nil); err != nil ||
		len(doc.Answers) != 1 ||
		!strings.Contains(doc.Answers[0].Error, "not known") {
		t.Errorf("a question of the future: %+v, %v", doc.Answers, err)
	}
}

// TestRemoved: a removed host loses its connection and gets no other; a copy of its disk is
// quarantined; an approved one returns.
func TestRemoved(t *testing.T) {
	d := start(t, options(t))
	dir := d.o.Dir
	address, token := invite(t, dir, Request{Uses: 10})
	homes := t.TempDir()
	home, err := join.Prepare(durable.OS(), filepath.Join(homes, "a"), address, token)
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, h *join.Home, machine string) chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- node.Run(ctx, node.Options{Home: h, Source: swarm.NewHost(0, 1000), Version: "1.0",
				About: join.About{Machine: machine, Name: "a"}, BeatEvery: 100 * time.Millisecond, Longest: time.Second})
		}()
		return ended
	}
	state := func() string {
		all := d.register.Members()
		if len(all) == 0 {
			return ""
		}
		return string(all[0].State)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := run(ctx, home, "m1")
	until(t, "the host speaks", func() bool {
		s := d.status()
		return s.Members["member"] == 1 && s.Silent == 0 && len(s.Classes) == 1 && s.Classes[0].Name != "unknown"
	})
	id := d.register.Members()[0].ID
	// A copy of the whole disk starts beside it.
	if err := os.CopyFS(filepath.Join(homes, "b"), os.DirFS(filepath.Join(homes, "a"))); err != nil {
		t.Fatal(err)
	}
	clone, err := join.Open(durable.OS(), filepath.Join(homes, "b"))
	if err != nil {
		t.Fatal(err)
	}
	copied, stopCopy := context.WithCancel(t.Context())
	defer stopCopy()
	cloned := run(copied, clone, "m1")
	until(t, "quarantine", func() bool { return state() == "quarantined" })
	until(t, "end of both connections", func() bool { return d.hub.Connections() == own })
	stopCopy()
	<-cloned
	var doc report.FleetDecideDocument
	if err := Call(t.Context(), dir, Request{Do: DoApprove, IDs: []string{id}}, &doc, nil); err != nil {
		t.Fatal(err)
	}
	valid(t, &doc)
	until(t, "the approved host is back", func() bool { return d.hub.Connections() == own+1 })
	if err := Call(t.Context(), dir, Request{Do: DoRemove, IDs: []string{id}, Reason: "sold"}, &doc,
		nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if refusal, ok := errors.AsType[*member.Refusal](err); !ok || refusal.Retry {
			t.Errorf("the removed host ended with %v, want a refusal for good", err)
		}
	case <-time.After(patience):
		t.Error("the removed host did not learn of it")
	}
	until(t, "end of the connection", func() bool { return d.hub.Connections() == own })
	if err := Call(t.Context(), dir, Request{Do: DoApprove, IDs: []string{id}}, &doc, nil); err == nil {
		t.Error("a removed host was approved")
	}
}

// asleep is a host that does not answer.
type asleep struct {
	*swarm.Host
	asked chan struct{}
}

func (a asleep) Answer(ctx context.Context, _ string, _ []string) (any, error) {
	a.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestClientGone: the work for a request ends when its client closes the connection.
func TestClientGone(t *testing.T) {
	d := start(t, options(t))
	address, token := invite(t, d.o.Dir, Request{Uses: 1})
	home, err := join.Prepare(durable.NewMem(), "/node", address, token)
	if err != nil {
		t.Fatal(err)
	}
	source := asleep{swarm.NewHost(1, 100), make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	defer done.Wait()
	defer stop()
	done.Go(func() {
		err := node.Run(ctx, node.Options{Home: home, Source: source, Version: "1.0", Longest: time.Second,
			About: join.About{Machine: "m", Name: "asleep"}, BeatEvery: 200 * time.Millisecond})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	until(t, "the hub has the facts of the host", func() bool {
		hosts := d.hosts.Hosts()
		return len(hosts) == 1 && hosts[0].Facts != nil
	})
	// A host that renews its identity is away for a moment: ask until it is there.
	var served chan struct{}
	var client net.Conn
	for asked := false; !asked; {
		var at net.Conn
		at, client = net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.serveOne(ctx, at)
			_ = at.Close()
		}()
		if err := json.NewEncoder(client).Encode(Request{Do: DoAsk, Verb: node.VerbPing,
			WithinMS: patience.Milliseconds()}); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, client) }()
		select {
		case <-source.asked:
			served, asked = ended, true
		case <-ended: // absent
			client.Close()
			time.Sleep(20 * time.Millisecond)
		case <-time.After(5 * time.Second): // the question was lost on the way
			client.Close()
			<-ended
		}
	}
	client.Close()
	began := time.Now()
	<-served
	if took := time.Since(began); took > patience/2 {
		t.Errorf("the work ended %v after its client", took)
	}
}

// TestSocket: only the user of the hub can reach it, and nonsense is answered.
func TestSocket(t *testing.T) {
	d := start(t, options(t))
	invite(t, d.o.Dir, Request{Uses: 1}) // it listens
	info, err := os.Stat(Socket(d.o.Dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v, want mode 0600", info.Mode(), err)
	}
	for _, line := range []string{"", "{}", "nonsense", `{"do":"hosts","selection":"hots:x"}`,
		`{"do":"invite","uses":0}`,
		`{"do":"invite","uses":1,"ttl_ms":1000,"groups":["a.b"]}`, `{"do":"approve"}`, `{"do":"fetch"}`} {
		c, err := net.Dial("unix", Socket(d.o.Dir))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(c, line); err != nil {
			t.Fatal(err)
		}
		var f frame
		answer, err := bufio.NewReader(c).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(answer, &f)
		}
		if err != nil || f.Error == "" || !f.Usage {
			t.Errorf("%q: %q, %v, want an error of the request", line, answer, err)
		}
		c.Close()
	}
	if _, err := Open(d.o); err == nil {
		t.Error("a second desk opened the same register")
	}
}
