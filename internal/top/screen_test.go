package top_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/top"
)

// screenOfTest is the main function of this test binary when a test starts it at a terminal: the
// live view of this host, or one that fails.
func screenOfTest() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	terminal := top.Terminal{In: os.Stdin, Out: os.Stdout, Environment: os.Environ(),
		Colour: os.Getenv("NO_COLOR") == ""}
	begin := top.Begin{Host: "near", Interval: 100 * time.Millisecond}
	var err error
	fake := func(breaks func(h *top.Handle) error) error {
		return top.Show(ctx, terminal, top.NewState(begin), func(ctx context.Context, h *top.Handle) error {
			for _, r := range readings() {
				h.Change(func(s *top.State) { s.Reading(r) })
			}
			// A key from the test ends the wait.
			for h.Watched() == "" && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			return breaks(h)
		})
	}
	switch os.Getenv("LINERATE_TEST_SCREEN") {
	case "live":
		err = top.Run(ctx, terminal, begin, top.Source{Interval: begin.Interval, StateDir: os.Getenv("LINERATE_STATE")})
	case "panic":
		err = fake(func(h *top.Handle) error {
			h.Change(func(*top.State) { panic("drawn wrong") })
			return nil
		})
	case "panic-behind":
		err = fake(func(*top.Handle) error { panic("read wrong") })
	case "failure":
		err = fake(func(*top.Handle) error { return fmt.Errorf("read nothing") })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ended with:", err)
		os.Exit(1)
	}
}
