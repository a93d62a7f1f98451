package peer_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// farProcess runs the far program of this test binary over pipes, without ssh.
func farProcess(t *testing.T, dir string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), farEnv+"="+dir, allowEnv+"=1")
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, in, out
}

// pipes are the far program's standard input and output as one stream.
type pipes struct {
	io.Reader
	io.Writer
}

func (pipes) Close() error { return nil }

// TestFarEndOutlivesABrokenPipe closes standard output only, as happens when sshd dies: the far
// program must end in order and not by SIGPIPE.
func TestFarEndOutlivesABrokenPipe(t *testing.T) {
	t.Parallel()
	dir := farDir(t)
	path := filepath.Join(dir, "net.ipv4.tcp_rmem")
	write(t, path, string(original))
	cmd, in, out := farProcess(t, dir)
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "linerate/1 data-port=") {
		t.Fatalf("greeting %q, %v", line, err)
	}
	conn := wire.NewConn(pipes{r, in})
	defer conn.Close()
	for i, m := range []struct{ typ, body string }{
		{"hello", `{"protocol":1}`},
		{"change.apply", fmt.Sprintf(`{"reason":"to be lost","settings":[{"knob":%q,"value":%q}]}`, rmem, larger)},
	} {
		if err := conn.Send(t.Context(), m.typ, raw(fmt.Sprintf(`{"id":%d,"body":%s}`, i+1, m.body))); err != nil {
			t.Fatal(err)
		}
		answer, err := conn.Receive(t.Context())
		if err != nil || strings.Contains(string(answer.Body), "fault") {
			t.Fatalf("%s: %s, %v", m.typ, answer.Body, err)
		}
	}
	if got := read(t, path); got != string(larger) {
		t.Fatalf("the knob is %q", got)
	}
	out.Close()
	_ = cmd.Wait() // it also returns an error about the closed pipe
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the far program ended with %v", cmd.ProcessState)
	}
	if got := read(t, path); got != string(original) {
		t.Errorf("the trial left %q", got)
	}
}

// TestFarEndOutlivesAClientThatReadsNothing stops reading with answers under way and goes silent,
// as a host does that loses its power: sshd keeps the pipe open for a quarter of an hour, and the
// far program sleeps in a write. Its trial must go back all the same when the channel ends.
func TestFarEndOutlivesAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	dir := farDir(t)
	path := filepath.Join(dir, "net.ipv4.tcp_rmem")
	write(t, path, string(original))
	_, in, out := farProcess(t, dir)
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "linerate/1 data-port=") {
		t.Fatalf("greeting %q, %v", line, err)
	}
	// Without a wire.Conn, whose beats would go on.
	send := func(typ, body string) {
		t.Helper()
		m := fmt.Sprintf(`{"type":%q,"body":%s}`, typ, body)
		if _, err := in.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)); err != nil {
			t.Fatal(err)
		}
	}
	send("hello", `{"id":1,"body":{"protocol":1}}`)
	send("change.apply", fmt.Sprintf(`{"id":2,"body":{"reason":"to be lost","settings":[{"knob":%q,"value":%q}]}}`,
		rmem, larger))
	for answers := 0; answers < 2; {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			t.Fatal(err)
		}
		if n := binary.BigEndian.Uint32(head[:]); n > 0 {
			answers++
			if body, err := io.ReadAll(io.LimitReader(r, int64(n))); err != nil || strings.Contains(string(body), "fault") {
				t.Fatalf("%s, %v", body, err)
			}
		}
	}
	if got := read(t, path); got != string(larger) {
		t.Fatalf("the knob is %q", got)
	}
	for id := range 20 { // more than a pipe holds
		send("snapshot", fmt.Sprintf(`{"id":%d}`, 3+id))
	}
	for end := time.Now().Add(2 * time.Minute); read(t, path) != string(original); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the trial of a client that is gone is still in force")
		}
	}
}

// FuzzSession sends a far host arbitrary messages in every phase; it must neither crash nor hang.
func FuzzSession(f *testing.F) {
	for _, typ := range []string{"hello", "snapshot", "knob.read", "change.apply", "change.undo", "change.commit",
		"run.open", "run.close", "cancel", "test.start", "test.stop", "answer"} {
		f.Add(typ, []byte(`{"id":1,"body":{}}`))
	}
	f.Add("knob.read", []byte(`{"id":1,"body":{"knob":"sysctl:a/../../etc"}}`))
	f.Add("change.apply", []byte(`{"id":2,"body":{"for_nanoseconds":-1,"settings":[{"knob":"","value":""}]}}`))
	f.Add("test.start", []byte(`{"spec":{"test":"stream","streams":-1}}`))
	f.Add("test.start", []byte(`{"spec":{"test":"rr","duration_nanoseconds":200000000}}`))
	f.Add("run.open", []byte(`{"id":3,"body":{"spec":{"test":"ping"}}}`))
	f.Add("run.open", []byte(`{"id":4,"body":{"spec":{"test":"stream","window_bytes":65536,"mss_bytes":1}}}`))
	f.Fuzz(func(t *testing.T, typ string, body []byte) {
		if !json.Valid(body) || typ == "" {
			return
		}
		x, y := net.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- peer.ServeStdio(t.Context(), y, y,
				peer.ServerOptions{Limits: traffic.Limits{MaxDuration: time.Second}})
		}()
		r := bufio.NewReader(x)
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		conn := wire.NewConn(struct {
			io.Reader
			io.WriteCloser
		}{r, x})
		for i, m := range []struct {
			typ  string
			body raw
		}{
			{"hello", `{"id":1001,"body":{"protocol":1}}`},
			{"run.open", `{"id":1002,"body":{"spec":{"test":"rr","duration_nanoseconds":200000000}}}`},
			{typ, raw(body)},
			{"run.close", `{"id":1003}`},
		} {
			if err := conn.Send(t.Context(), m.typ, m.body); err != nil {
				break // it may close the connection
			}
			if i < 2 {
				if _, err := conn.Receive(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		conn.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
