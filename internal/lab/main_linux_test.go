package lab

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/linerate/linerate/internal/lab/work"
)

// The test binary is also the agent of its worlds, and plays linerate in them.
func TestMain(m *testing.M) {
	if os.Args[0] != "linerate" {
		os.Exit(m.Run())
	}
	if len(os.Args) > 1 && os.Args[1] == "lab-host" {
		if err := RunHost(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == workCommand {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if err := work.RunDescribed(ctx, os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(standIn(os.Args[1:]))
}
