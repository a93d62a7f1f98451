package executor_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

const fin = knob.ID("sysctl:net.ipv4.tcp_fin_timeout") // of the network namespace

// The test binary plays two parts besides the test: `guard …` is a guard, and `agent STATE` carries
// out the envelopes in STATE.orders.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guard":
			journaltest.Finish(journaltest.Guard(os.Args[2:], liveOptions))
		case "agent":
			journaltest.Finish(agentProcess(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

func liveOptions(state string) journal.Options {
	return journal.Options{Dir: state, Backend: live.New(), Catalog: knob.Catalogue(), Mode: journal.Deadline}
}

func liveExecutor(state string, die func()) *executor.Executor {
	if die == nil {
		die = func() {}
	}
	fs := durable.NewFaulty(durable.OS(), func(durable.Op) error { die(); return nil })
	knobs := journaltest.MortalKnobs{Backend: live.New(), Die: die}
	return executor.New(executor.Config{Host: "host-1", State: state, FS: fs, Read: knobs.Read, BootID: sys.BootID,
		Keys: func() (order.Keys, error) {
			return order.Keys{"ann": private("ann").Public().(ed25519.PublicKey)}, nil
		},
		Policy: func() (policy.Policy, error) {
			return policy.Parse([]byte("version: 1\nchanges:\n  allow: [sysctl:net.ipv4.tcp_fin_timeout]\n"))
		},
		Open: func() (*journal.Journal, error) {
			o := liveOptions(state)
			o.FS, o.Backend = fs, knobs
			o.Guard = &journal.GuardOptions{Handshake: journaltest.Patience}
			return journaltest.OpenSoon(o)
		}})
}

// agentProcess carries out orders until one kills it.
func agentProcess(state string) error {
	data, err := os.ReadFile(state + ".orders")
	if err != nil {
		return err
	}
	var orders [][]byte
	if err := json.Unmarshal(data, &orders); err != nil {
		return err
	}
	e := liveExecutor(state, journaltest.Mortal("AGENT", filepath.Dir(state)))
	for _, o := range orders {
		if a := e.Execute(context.Background(), o); a.Code == order.Failed {
			return errors.New(a.Text)
		}
	}
	return nil
}

// TestKilledAgent kills the agent before its accesses to disk and knobs while it carries out a try
// and a commit, with real guards and knobs of a network namespace. The orders then come again. At
// the end nothing is in trial, and the knob holds what the report says.
func TestKilledAgent(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	done := make(chan struct{})
	var setUp error
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the namespace ends with the thread
		if setUp = unix.Unshare(unix.CLONE_NEWNET); setUp == nil {
			killEachStep(t)
		}
	}()
	<-done
	if errors.Is(setUp, unix.EPERM) {
		testenv.Missing(t, testenv.NetNS, setUp)
	}
	if setUp != nil {
		t.Fatal(setUp)
	}
}

func killEachStep(t *testing.T) {
	before, err := live.New().Read(t.Context(), fin)
	if err != nil {
		t.Error(err)
		return
	}
	codes := make(map[order.Code]int)
	for n := 1; ; n += killStride {
		dir := filepath.Join(t.TempDir(), fmt.Sprint(n))
		state := filepath.Join(dir, "state")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Error(err)
			return
		}
		now := time.Now()
		try := order.Order{ID: "o1", Rollout: "r1", Host: "host-1", Verb: order.Try, Epoch: 1, Serial: 1, Knob: fin,
			Expect: before, To: "17", NotBefore: now.Add(-time.Minute).Unix(), NotAfter: now.Add(time.Hour).Unix(), Deadline: 5}
		commit := try
		commit.ID, commit.Of, commit.Verb, commit.Serial, commit.Deadline = "o2", "o1", order.Commit, 2, 0
		orders, err := json.Marshal([][]byte{sign(t, try, "ann"), sign(t, commit, "ann")})
		if err == nil {
			err = os.WriteFile(state+".orders", orders, 0o600)
		}
		if err != nil {
			t.Error(err)
			return
		}
		died := journaltest.Killed(t, "agent", journaltest.Start(t, []string{fmt.Sprintf("DIES_AT_AGENT=%d", n)}, "agent",
			state).Run())
		if err := journaltest.Start(t, nil, "agent", state).Run(); err != nil {
			t.Errorf("step %d: again: %v", n, err)
			return
		}
		journaltest.GuardEnds(t, state)
		report, err := liveExecutor(state, nil).Report(t.Context(), "r1")
		if err != nil || len(report.Orders) == 0 {
			t.Errorf("step %d: %+v, %v", n, report, err)
			return
		}
		want := before
		for _, s := range report.Orders {
			codes[s.Answer.Code]++
			switch s.Answer.Code {
			case order.InTrial:
				t.Errorf("step %d: in trial: %+v", n, report)
			case order.Committed:
				want = "17"
			}
		}
		if got, err := live.New().Read(t.Context(), fin); err != nil || got != want {
			t.Errorf("step %d: %s is %q, want %q, %v: %+v", n, fin, got, want, err, report)
		}
		undo := commit
		undo.ID, undo.Verb, undo.Serial = "o3", order.Undo, 3
		liveExecutor(state, nil).Execute(t.Context(), sign(t, undo, "ann"))
		if got, err := live.New().Read(t.Context(), fin); err != nil || got != before || t.Failed() {
			t.Errorf("step %d: after undo %s is %q, want %q, %v", n, fin, got, before, err)
			return
		}
		if !died {
			if n < 50 {
				t.Errorf("only %d steps", n)
			}
			t.Logf("%d steps, every %dth: %v", n, killStride, codes)
			return
		}
	}
}
