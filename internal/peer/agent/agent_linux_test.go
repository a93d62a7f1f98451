package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

const (
	runID         = "20261122-120000-0001"
	measurementID = "20261122-130000-0001"
)

// stateWith creates a state directory with a change and a run.
func stateWith(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	j := openJournal(t, dir)
	defer j.Close()
	if _, err := j.Apply(t.Context(), journal.Request{Reason: "because"},
		knob.Setting{Knob: "sysctl:net.core.rmem_max", Value: "300000"}); err != nil {
		t.Fatal(err)
	}
	if err := runs.In(durable.OS(), dir, runs.Tunes, 0).Save(runID,
		[]byte("{\n  \"schema\": \"linerate.tune/1\",\n  \"n\": 1e400\n}\n")); err != nil {
		t.Fatal(err)
	}
	if err := runs.In(durable.OS(), dir, runs.Measurements, 0).Save(measurementID,
		[]byte(`{"schema":"linerate.measure/1"}`)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openJournal(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(journal.Options{
		Dir: dir, Unguarded: true, BootID: "boot",
		Backend:  knob.NewMemory(map[knob.ID]knob.Value{"sysctl:net.core.rmem_max": "200000"}),
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// socketIn returns a path for a socket in a directory of its own, short enough for sockaddr_un.
func socketIn(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "agent.sock")
}

// serving starts a server, and returns a function that ends it and returns its error.
func serving(t *testing.T, c Config) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- Serve(ctx, c, func(string) { close(up) }) }()
	select {
	case <-up:
	case err := <-over:
		cancel()
		t.Fatal(err)
	}
	end = func() error {
		cancel()
		err := <-over
		over <- err
		return err
	}
	t.Cleanup(func() { _ = end() })
	return end
}

// connect returns a client of the server at a socket, once the server has answered.
func connect(ctx context.Context, socket string) (*Client, error) {
	c := NewClient(socket)
	if _, err := c.hello(ctx); err != nil {
		_ = c.Close() // nothing was under way
		return nil, err
	}
	return c, nil
}

func dial(t *testing.T, socket string) *Client {
	t.Helper()
	c, err := connect(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestClientAsLocal checks that a client returns the same data as Local.
func TestClientAsLocal(t *testing.T) {
	dir, socket := stateWith(t), socketIn(t)
	local := Local{Dir: dir}
	end := serving(t, Config{Local: local, Version: "v", Socket: socket})
	c := dial(t, socket)
	ctx := t.Context()
	same := func(what string, got, want any, errs ...error) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || errors.Join(errs...) != nil {
			t.Errorf("%s: %s %v", what, diff, errs)
		}
	}
	state, err := c.State(ctx)
	same("state", state, dir, err)
	far, err := c.Stamp(ctx)
	near, err2 := local.Stamp(ctx)
	same("stamp", far, near, err, err2)
	changes, err := c.History(ctx)
	want, err2 := local.History(ctx)
	same("history", changes, want, err, err2)
	if len(changes) != 1 {
		t.Errorf("%d changes", len(changes))
	}
	list, err := c.Runs(ctx, runs.Tunes)
	same("runs", list, []string{runID}, err)
	doc, err := c.Run(ctx, runs.Tunes, runID)
	same("run", string(doc), `{"schema":"linerate.tune/1","n":1e400}`, err)
	list, err = c.Runs(ctx, runs.Measurements)
	same("measurements", list, []string{measurementID}, err)
	doc, err = c.Run(ctx, runs.Measurements, measurementID)
	same("measurement", string(doc), `{"schema":"linerate.measure/1"}`, err)
	if _, err := c.Run(ctx, runs.Measurements, runID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run among the measurements: %v", err)
	}

	if _, err := c.Run(ctx, runs.Tunes, "20261122-120000-0002"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that is not there: %v", err)
	}
	if _, err := c.Run(ctx, runs.Tunes, "../journal"); !errors.Is(err, runs.ErrNoRun) {
		t.Errorf("a name that is none: %v", err)
	}
	// The next change shows at once, in stamp and history.
	j := openJournal(t, dir)
	defer j.Close()
	if _, err := j.Undo(ctx, "1"); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Stamp(ctx); err != nil || again == far {
		t.Errorf("the stamp stays %q, %v", again, err)
	}
	if changes, err := c.History(ctx); err != nil || changes[0].State != journal.Undone {
		t.Errorf("history: %+v, %v", changes, err)
	}
	// The client finds a restarted server.
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	if _, err := c.Runs(ctx, runs.Tunes); err == nil {
		t.Error("an answer without a server")
	}
	end = serving(t, Config{Local: local, Version: "v", Socket: socket})
	if _, err := c.Runs(ctx, runs.Tunes); err != nil {
		t.Errorf("after a restart of the server: %v", err)
	}
	_ = end()
	serving(t, Config{Local: local, Version: "v", Socket: socket})
	if _, err := c.Runs(ctx, runs.Tunes); err != nil { // the connection was open when the server ended
		t.Errorf("after another restart of the server: %v", err)
	}
}

// TestNothingThere checks that a host that was never changed has empty answers and no errors, and
// that an unreadable state is an error.
func TestNothingThere(t *testing.T) {
	local := Local{Dir: filepath.Join(t.TempDir(), "none")}
	stamp, err := local.Stamp(t.Context())
	changes, err2 := local.History(t.Context())
	list, err3 := local.Runs(t.Context(), runs.Tunes)
	if err := errors.Join(err, err2, err3); err != nil || stamp != "- - -" || len(changes)+len(list) > 0 {
		t.Errorf("%q, %v, %v, %v", stamp, changes, list, err)
	}
	dir := stateWith(t)
	store := runs.In(durable.OS(), dir, runs.Tunes, 0)
	if err := os.Truncate(store.Path(runID), maxDocument+1); err != nil {
		t.Fatal(err)
	}
	if _, err := (Local{Dir: dir}).Run(t.Context(), runs.Tunes, runID); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a document too large: %v", err)
	}
}

// pipeServer runs a server over a pipe in memory.
func pipeServer(t *testing.T, dir string) (*server, func() net.Conn) {
	s := newServer(Config{Local: Local{Dir: dir}, Version: "v"}, nil, nil, 1, -1)
	s.identify = func(net.Conn) (peer, error) { return peer{}, nil }
	return s, func() net.Conn {
		near, far := net.Pipe()
		who, err := s.admit(far)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer s.release(far, who)
			s.talk(t.Context(), far, who)
		}()
		t.Cleanup(func() { near.Close() })
		return near
	}
}

// TestTalk checks that a line that is no question is answered once, and ends the connection.
func TestTalk(t *testing.T) {
	_, connect := pipeServer(t, stateWith(t))
	for _, c := range []struct{ say, want string }{
		{`{"ask":"hello"}`, `{"version":"v","state":"`},
		{`{"ask":"run","id":"../../etc/shadow"}`, `{"error":"\"../../etc/shadow\" is not the id of a run"}`},
		{`{"ask":"run"}`, `{"error":"\"\" is not the id of a run"}`},
		{`{"ask":"file","id":"/etc/shadow"}`, `{"error":"not a question of this protocol"}`},
		{`{"ask":"hello","id":"x"}`, `{"error":"not a question of this protocol"}`},
		{`{"ask":"hello","path":"x"}`, `{"error":"not a question of this protocol"}`},
		{`{"ask":"hello"}{"ask":"hello"}`, `{"error":"not a question of this protocol"}`},
		{`GET / HTTP/1.1`, `{"error":"not a question of this protocol"}`},
		{strings.Repeat("x", maxQuestion+1), `{"error":"not a question of this protocol"}`},
		{strings.Repeat("x", maxOrder+1), `{"error":"line is too long"}`},
	} {
		conn := connect()
		go func() { _, _ = io.WriteString(conn, c.say+"\n") }()
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, c.want) {
			t.Errorf("%.40s: %.200s, %v", c.say, line, err)
		}
		if strings.Contains(c.want, "error") {
			if rest, err := in.ReadString('\n'); rest != "" || !errors.Is(err, io.EOF) {
				t.Errorf("%.40s: goes on with %q, %v", c.say, rest, err)
			}
		}
	}
}

// TestSilence checks that a client that is silent, or does not read its answer, is disconnected.
func TestSilence(t *testing.T) {
	s, connect := pipeServer(t, stateWith(t))
	s.now = func() time.Time { return time.Unix(1, 0) } // every deadline has passed
	conn := connect()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("silent: %v", err)
	}
	s, connect = pipeServer(t, stateWith(t))
	s.reading = -time.Hour
	conn = connect()
	if _, err := io.WriteString(conn, `{"ask":"runs"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("not reading: %v", err)
	}
	if len(s.answering) != 0 {
		t.Error("its turn is not given back")
	}
}

// TestOneUserReadsNothing checks that a user whose connections read no answer does not keep the
// questions of another user from being answered.
func TestOneUserReadsNothing(t *testing.T) {
	s, connect := pipeServer(t, stateWith(t))
	s.reading = time.Hour
	ask := func(uid uint32) net.Conn {
		s.identify = func(net.Conn) (peer, error) { return peer{uid: uid, groups: []uint32{5}}, nil }
		s.group = 5
		conn := connect()
		if _, err := io.WriteString(conn, `{"ask":"hello"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	for range maxOfOneUser {
		ask(7)
	}
	for len(s.answering) == 0 { // until the first one has its turn
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // time for a second one, which must not come
	for _, uid := range []uint32{8, 0} {
		conn := ask(uid)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
			t.Errorf("user %d: %q, %v", uid, line, err)
		}
	}
}

// TestConnections checks that one user cannot have all connections, and that a closed one makes
// room.
func TestConnections(t *testing.T) {
	s := newServer(Config{}, nil, nil, 1, 5)
	who := peer{}
	s.identify = func(net.Conn) (peer, error) { return who, nil }
	admit := func(uid uint32) (net.Conn, error) {
		conn, _ := net.Pipe()
		who = peer{uid: uid, groups: []uint32{5}}
		_, err := s.admit(conn)
		return conn, err
	}
	var last net.Conn
	for i := range maxConnections {
		conn, err := admit(uint32(i / maxOfOneUser))
		if err != nil {
			t.Fatal(err)
		}
		last = conn
		if i == maxOfOneUser-1 {
			if _, err := admit(0); err == nil {
				t.Error("one more of a user who has enough")
			}
		}
	}
	if _, err := admit(7); err == nil {
		t.Error("one more than there may be")
	}
	s.release(last, peer{uid: 1})
	if _, err := admit(7); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	// Users with all connections do not lock root out.
	s.users[0].connections = 1
	if _, err := admit(0); err != nil {
		t.Errorf("root: %v", err)
	}
}

// TestBadServer checks that a client refuses answers that violate the protocol, and does not wait
// for ever.
func TestBadServer(t *testing.T) {
	socket := socketIn(t)
	if err := os.Mkdir(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	say := make(chan string, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			text := <-say
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, text)
				if text == "" {
					_, _ = conn.Read(make([]byte, 1)) // until the client hangs up
				}
			}()
		}
	}()
	for _, text := range []string{"nonsense\n", "{}\n", "[]\n", `{"runs":["../x"]}` + "\n", `{"version":"v"`,
		strings.Repeat(" ", maxAnswer+10) + "\n"} {
		say <- text
		if c, err := connect(t.Context(), socket); err == nil {
			t.Errorf("%.20q: believed", text)
			c.Close()
		}
	}
	say <- ""
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := connect(ctx, socket); err == nil {
		t.Error("no answer: believed")
	}
}

func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{`{"ask":"hello"}`, `{"ask":"run","id":"20261122-120000-0001"}`,
		`{"ask":"run","id":"../x"}`, `{"ask":"file"}`, `{}`, `null`, ``, `{"ask":"hello"}x`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		q, err := parseQuestion(line)
		if err != nil {
			return
		}
		if (q.Ask == askRun || q.Ask == askMeasurement) != runs.Name(q.ID) || strings.ContainsAny(q.ID, `/\.`) {
			t.Fatalf("%q: taken as %+v", line, q)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"version":"v","state":"/s"}`, `{"runs":["20261122-120000-0001"]}`, `{"runs":["x"]}`,
		`{"document":{"a":[1e999]}}`, `{"error":"x","missing":true}`,
		`{"changes":[{"id":"0001","time":"2026-11-22T12:00:00Z"}]}`, `{}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := parseAnswer(line)
		if err != nil {
			return
		}
		for _, id := range a.Runs {
			if !runs.Name(id) {
				t.Fatalf("%q", id)
			}
		}
	})
}

// TestRules: counters of the rules of a namespace are read with the comments of their rules, and
// grow with the packets.
func TestRules(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	nft := testenv.Program(t, "nft")
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread and its namespace end with this function
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			text := "table ip acct {\nchain out {\ntype filter hook output priority 0;\n"
			for i := range 40 {
				for _, body := range []string{"ip saddr", "ip daddr"} {
					text += fmt.Sprintf("%s 127.0.%d.0/24 counter comment \"house %d\"\n", body, i, i)
				}
			}
			load := exec.Command(nft, "-f", "-")
			load.Stdin = strings.NewReader(text + "}\n}\n")
			if out, err := load.CombinedOutput(); err != nil {
				return fmt.Errorf("nft: %w: %s", err, out)
			}
			if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
				return fmt.Errorf("ip: %w: %s", err, out)
			}
			takes, err := net.ListenPacket("udp", "127.0.7.1:0")
			if err != nil {
				return err
			}
			defer takes.Close()
			conn, err := net.Dial("udp", takes.LocalAddr().String())
			if err != nil {
				return err
			}
			defer conn.Close()
			for range 5 {
				if _, err := conn.Write([]byte("x")); err != nil {
					return err
				}
			}
			counts, left, err := Local{}.Rules(t.Context())
			if err != nil || len(counts) != 80 || left != 0 {
				return fmt.Errorf("%d counts, %d left out: %w", len(counts), left, err)
			}
			for _, c := range counts {
				if c.Name == "house 7" && c.Match == "ip daddr 127.0.7.0/24" && c.Packets == 5 && c.Bytes == 145 {
					return nil
				}
			}
			return fmt.Errorf("no count has the packets: %+v", counts)
		}()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
