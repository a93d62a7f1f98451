package timeline

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
)

const killMark = "TIMELINE_TEST_KILL"

// TestKillChild is the process that TestKill kills: it puts events forever and prints each one. Run
// directly, it tests nothing.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killMark)
	if dir == "" {
		return
	}
	s, err := Open(Options{Dir: dir, MaxBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		e := event(fmt.Sprint("e", i%5), i)
		e.State = fmt.Sprint(i)
		if err := s.Put(e, []byte(strings.Repeat(fmt.Sprint(i%10), 3000))); err != nil {
			t.Fatal(err)
		}
		fmt.Println("put", e.ID, i)
	}
}

// TestKill kills a writer repeatedly in one directory: the events that it printed are there, and
// nothing is damaged.
func TestKill(t *testing.T) {
	testenv.Need(t, testenv.Long)
	random := rand.New(rand.NewPCG(8, 8))
	dir := t.TempDir()
	for range 6 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
		cmd.Env = append(os.Environ(), killMark+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make(map[string]int)
		lines := bufio.NewScanner(out)
		for n := 20 + random.IntN(60); lines.Scan(); n-- {
			var id string
			var i int
			if _, err := fmt.Sscanf(lines.Text(), "put %s %d", &id, &i); err != nil {
				t.Fatalf("the child says %q", lines.Text())
			}
			said[id] = i
			if n == 0 {
				if err := cmd.Process.Kill(); err != nil { // and keep reading: it may have printed more
					t.Fatal(err)
				}
			}
		}
		var ended *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &ended) {
			t.Fatalf("the child ended with %v", err)
		}
		s, err := Open(Options{Dir: dir, MaxBytes: 64 << 10, FS: durable.OS(), Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		if w := s.Status().Warnings; len(w) > 0 || len(said) != 5 {
			t.Errorf("%d ids, warnings %q", len(said), w)
		}
		for id, i := range said {
			e, _ := s.Get(id)
			state := 0
			_, _ = fmt.Sscan(e.State, &state)
			doc, err := s.Document(id)
			if state != i && state != i+5 || err != nil || len(doc) != 3000 ||
				strings.Trim(string(doc), string(doc[0])) != "" {
				t.Errorf("%s, said to be put as %d, is %d with a document of %d bytes, %v", id, i, state, len(doc), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
